"""`passgate verify` on files that it has no reason to trust."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from passgate.tasks.attestations.keys import signing_key
from passgate.tasks.attestations.statement import (
    IN_TOTO,
    Envelope,
    Signature,
    envelope_text,
    signed_bytes,
    statement_of,
)
from passgate.tasks.history.run_store import verdict_text
from passgate.tasks.model.verdict import Verdict, signed_off
from tests.project import Project
from tests.signing import a_sign_off, awaiting, write_keys
from tests.unit.reports.hostile import HOSTILE


@pytest.fixture
def signed(bare_project: Project) -> Project:
    """A folder with a signed verdict, as somebody has sent it."""
    send(bare_project, signed_off(awaiting(), a_sign_off(by=HOSTILE.replace("\ud800", ""), reason="read it")))
    return bare_project


def send(project: Project, verdict: Verdict) -> None:
    private, _ = write_keys(project.path)
    payload = statement_of(verdict, verdict_text(verdict).encode())
    key = signing_key(private.read_bytes(), "")
    signature = Signature(key.keyid, key.sign(signed_bytes(payload)))
    project.write("sent/verdict.intoto.json", envelope_text(Envelope(payload, IN_TOTO, (signature,))))
    project.write("sent/verdict.json", verdict_text(verdict))


FILE = "sent/verdict.intoto.json"


def test_what_was_sent_is_verified_and_what_is_missing_is_said(signed: Project) -> None:
    result = signed.passgate("verify", FILE, "--key", "public.pem")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "not here journal.jsonl: no such file beside the envelope" in result.stdout
    assert "not here commit: no repository here that knows c0ffee" in result.stdout
    assert "Everything here is as signed; 2 could not be checked" in result.stdout


@pytest.mark.parametrize("name", ["last", "20260131T", ".passgate/runs/20260131T000000Z-release_candidate-0a0b"])
def test_a_run_is_verified_by_its_name(signed: Project, name: str) -> None:
    runs = signed.path / ".passgate/runs"
    runs.mkdir(parents=True)
    (signed.path / "sent").rename(runs / "20260131T000000Z-release_candidate-0a0b")
    result = signed.passgate("verify", name, "--key", "public.pem")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Everything here is as signed" in result.stdout


def test_a_run_that_nobody_has_signed_is_named_so(signed: Project) -> None:
    (signed.path / FILE).unlink()
    runs, run_id = signed.path / ".passgate/runs", "20260131T000000Z-release_candidate-0a0b"
    runs.mkdir(parents=True)
    (signed.path / "sent").rename(runs / run_id)
    result = signed.passgate("verify", "last", "--key", "public.pem")
    assert result.returncode == 2
    assert f"nobody has signed the verdict of {run_id}: `passgate sign-off` with --key does" in result.stderr


def test_a_rejection_verifies_and_is_no_pass(bare_project: Project) -> None:
    """`passgate verify ... && deploy` must not deploy what somebody has signed as rejected."""
    send(bare_project, signed_off(awaiting(), a_sign_off(decision="reject")))
    result = bare_project.passgate("verify", FILE, "--key", "public.pem")
    assert result.returncode == 1
    assert "Everything here is as signed" in result.stdout
    assert "release_candidate FAIL" in result.stdout


def test_text_of_others_is_only_shown(signed: Project) -> None:
    shown = signed.passgate("verify", FILE, "--key", "public.pem").stdout
    assert "\x1b" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())


def test_without_a_key_there_is_nothing_to_verify(signed: Project) -> None:
    result = signed.passgate("verify", FILE)
    assert result.returncode == 2
    assert "without --key nothing is verified: anyone could have made the signature" in result.stderr


def test_the_key_of_somebody_else_is_exit_1_and_says_nothing_of_the_verdict(signed: Project, tmp_path: Path) -> None:
    _, other = write_keys(tmp_path)
    result = signed.passgate("verify", FILE, "--key", str(other))
    assert result.returncode == 1
    assert "differs  signature" in result.stdout
    assert "PASS" not in result.stdout


@pytest.mark.parametrize(
    ("file", "key", "message"),
    [
        ("sent/verdict.json", "public.pem", "is no signed verdict"),
        ("sent/missing.json", "public.pem", "is no signed verdict: it cannot be read: No such file"),
        (".", "public.pem", "verdict.intoto.json is no signed verdict: it cannot be read: No such file"),
        ("missing.json", "public.pem", "is no signed verdict: it cannot be read: No such file"),
        ("missing", "public.pem", "no run 'missing' in .passgate/runs"),
        ("last", "public.pem", "no run 'last' in .passgate/runs"),
        (FILE, "key.pem", "is a private key, which is not for verifying"),
        (FILE, "missing.pem", "the key missing.pem cannot be read"),
        (FILE, "gates.yaml", "the key gates.yaml is no public key in PEM"),
    ],
)
def test_other_files_are_bad_input(signed: Project, file: str, key: str, message: str) -> None:
    signed.write("gates.yaml", "version: 1\n")
    result = signed.passgate("verify", file, "--key", key)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_large_file_is_not_read(signed: Project) -> None:
    with (signed.path / FILE).open("wb") as file:
        file.truncate(17 * 1024**2)
    result = signed.passgate("verify", FILE, "--key", "public.pem")
    assert result.returncode == 2
    assert "is larger than 16384 KiB" in result.stderr


def test_prefect_and_pandas_are_not_needed(signed: Project) -> None:
    """Whoever verifies a release elsewhere should not wait for them."""
    code = (
        "import sys; from passgate.flows.cli import main; "
        f"code = main(['verify', {FILE!r}, '--key', 'public.pem']); "
        "print(sorted({'prefect', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=signed.path, env=signed.full_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert json.loads((signed.path / "sent/verdict.json").read_text())["decision"] == "PASS"
