"""`passgate verify` on files that it has no reason to trust."""

import shutil
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
from passgate.tasks.model.verdict import signed_off
from tests.cli.commands import Here, exits, imported_by, refused, told
from tests.signing import a_sign_off, awaiting, write_keys

FILE = "sent/verdict.intoto.json"
RUN_ID = "20260131T000000Z-release_candidate-0a0b"
KEY = ("--key", "public.pem")


def send(project: Here, decision: str = "approve") -> None:
    """Write a folder with a signed verdict, as somebody has sent it."""
    verdict = signed_off(awaiting(), a_sign_off(decision=decision))
    private, _ = write_keys(project.path)
    payload = statement_of(verdict, verdict_text(verdict).encode())
    key = signing_key(private.read_bytes(), "")
    signature = Signature(key.keyid, key.sign(signed_bytes(payload)))
    project.write(FILE, envelope_text(Envelope(payload, IN_TOTO, (signature,))))
    project.write("sent/verdict.json", verdict_text(verdict))


@pytest.fixture
def signed(here: Here) -> Here:
    send(here)
    return here


def test_what_was_sent_is_verified_and_what_is_missing_is_said(signed: Here) -> None:
    said = told(signed, "verify", FILE, *KEY)
    assert "not here journal.jsonl: no such file beside the envelope" in said
    assert "not here commit: no repository here that knows c0ffee" in said
    assert "Everything here is as signed; 2 could not be checked" in said


@pytest.mark.parametrize("name", ["last", "20260131T", f".passgate/runs/{RUN_ID}"])
def test_a_run_is_verified_by_its_name_if_it_was_signed(signed: Here, name: str) -> None:
    run = signed.path / ".passgate/runs" / RUN_ID
    shutil.copytree(signed.path / "sent", run)
    assert "Everything here is as signed" in told(signed, "verify", name, *KEY)
    (run / "verdict.intoto.json").unlink()
    nobody = f"nobody has signed the verdict of {RUN_ID}: `passgate sign-off` with --key does"
    assert nobody in refused(signed, "verify", name, *KEY)


def test_a_rejection_verifies_and_is_no_pass(here: Here) -> None:
    """`passgate verify ... && deploy` must not deploy what somebody has signed as rejected."""
    send(here, "reject")
    said = exits(here, 1, "verify", FILE, *KEY).stdout
    assert "Everything here is as signed" in said
    assert "release_candidate FAIL" in said


def test_the_key_of_somebody_else_is_exit_1_and_says_nothing_of_the_verdict(signed: Here, tmp_path: Path) -> None:
    said = exits(signed, 1, "verify", FILE, "--key", str(write_keys(tmp_path)[1])).stdout
    assert "differs  signature" in said
    assert "PASS" not in said


@pytest.mark.parametrize(
    ("file", "key", "message"),
    [
        ("sent/verdict.json", "public.pem", "is no signed verdict"),
        (".", "public.pem", "verdict.intoto.json is no signed verdict: it cannot be read: No such file"),
        ("missing", "public.pem", "no run 'missing' in .passgate/runs"),
        ("large.json", "public.pem", "is larger than 16384 KiB"),
        (FILE, "key.pem", "is a private key, which is not for verifying"),
        (FILE, "missing.pem", "the key missing.pem cannot be read"),
        (FILE, "gates.yaml", "the key gates.yaml is no public key in PEM"),
        (FILE, "", "without --key nothing is verified: anyone could have made the signature"),
    ],
)
def test_other_files_are_bad_input(signed: Here, file: str, key: str, message: str) -> None:
    signed.write("gates.yaml", "version: 1\n")
    with (signed.path / "large.json").open("wb") as large:
        large.truncate(17 * 1024**2)
    assert message in refused(signed, "verify", file, *(("--key", key) if key else ()))


@pytest.mark.cold
def test_prefect_and_pandas_are_not_needed(signed: Here) -> None:
    """Whoever verifies a release elsewhere should not wait for them."""
    modules = imported_by(signed, "verify", FILE, *KEY)
    assert "passgate.tasks.commands.verify" in modules, "the command did its work"
    assert modules.isdisjoint({"prefect", "pandas", "pyarrow", "matplotlib"})
