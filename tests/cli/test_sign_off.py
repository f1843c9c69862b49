"""`passgate sign-off` and `passgate verify` after a real run: what a release goes through."""

import base64
import json
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.builders import write_task
from tests.object_store import ObjectStore, object_store
from tests.project import Project
from tests.signing import a_run_that_awaits, write_gate, write_keys

__all__ = ["object_store"]
pytestmark = pytest.mark.slow

APPROVE = ("--by", "Ada", "--decision", "approve", "--reason", "read every transcript")
REJECT = ("--by", "Ada", "--decision", "reject", "--reason", "too slow")


@pytest.fixture
def released(bare_project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A commit whose release gate awaits a sign-off."""
    monkeypatch.chdir(bare_project.path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_gate(bare_project.path)
    bare_project.git("add", ".")
    bare_project.git("commit", "-q", "-m", "Release")
    a_run_that_awaits()
    return bare_project


def verdict_of(project: Project) -> dict[str, object]:
    verdict: dict[str, object] = json.loads((project.run_folders()[-1] / "verdict.json").read_text())
    return verdict


def test_a_release_is_run_approved_signed_and_verified(project: Project, tmp_path: Path) -> None:
    write_gate(project.path)
    project.write("agent.sh", "echo yes")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Release")
    run = project.passgate("run", "release_candidate", "--agent", f"cli:sh {project.path}/agent.sh")
    assert run.returncode == 3, run.stdout + run.stderr
    assert "release_candidate INCONCLUSIVE: awaiting sign-off" in run.stdout
    private, public = write_keys(tmp_path)
    signed = project.passgate("sign-off", "last", *APPROVE, "--key", str(private))
    assert signed.returncode == 0, signed.stderr
    assert signed.stdout.splitlines()[0] == "release_candidate PASS: approved by Ada, 3 of 3 trials passed"
    assert "verdict.intoto.json" in signed.stdout
    assert verdict_of(project)["decision"] == "PASS"
    folder = project.run_folders()[-1]
    assert "approved by Ada" in (folder / "summary.md").read_text()

    envelope = str(folder / "verdict.intoto.json")
    verified = project.passgate("verify", envelope, "--key", str(public))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    lines = verified.stdout.splitlines()
    assert [line[:8].strip() for line in lines[:5]] == ["ok"] * 5
    assert lines[-1] == "Everything is as signed"
    for said in (
        "release_candidate PASS",
        "approve by Ada",
        "read every transcript",
        project.git("rev-parse", "HEAD"),
    ):
        assert said in verified.stdout

    changed = (folder / "verdict.json").read_text().replace("Ada", "Bob")
    (folder / "verdict.json").write_text(changed)
    verified = project.passgate("verify", envelope, "--key", str(public))
    assert verified.returncode == 1
    assert "differs  verdict.json" in verified.stdout


def test_a_release_at_a_url_is_signed_off_in_another_clone_which_knows_it_then(
    project: Project, object_store: ObjectStore, tmp_path: Path
) -> None:
    write_gate(project.path)
    project.write("agent.sh", "echo yes")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Release")
    url, clone = object_store.new_url(), Project(tmp_path / "clone")
    project.git("clone", "-q", str(project.path), str(clone.path))
    project.environment |= {**object_store.environment, "PASSGATE_ENGINE": "none"}
    clone.environment = dict(project.environment)
    agent = "cli:sh {project}/agent.sh"
    assert project.passgate("run", "release_candidate", "--agent", agent, "--run-store", url).returncode == 3
    private, public = write_keys(tmp_path)
    signed = clone.passgate("sign-off", f"{url}/last", *APPROVE, "--key", str(private))
    assert signed.returncode == 0, signed.stderr
    kept = {name.partition("/")[2] for name in object_store.keys(url)}
    assert {"verdict.intoto.json", "report.html", "report/trials-1.html"} <= kept
    assert project.passgate("verify", f"{url}/last", "--key", str(public)).returncode == 0
    page = clone.passgate("report", "last")
    assert page.returncode == 0, page.stderr


def test_a_release_is_rejected_once_and_for_all(released: Project) -> None:
    rejected = released.passgate("sign-off", "last", *REJECT)
    assert rejected.returncode == 1, rejected.stderr
    assert "release_candidate FAIL: rejected by Ada" in rejected.stdout
    again = released.passgate("sign-off", "last", *APPROVE)
    assert again.returncode == 2
    assert "is signed off already: rejected by Ada" in again.stderr
    assert verdict_of(released)["decision"] == "FAIL"


def test_what_has_changed_since_is_named_and_bad_input(released: Project) -> None:
    write_task(released.path / "suites/golden/say-yes.yaml", inputs={"prompt": "Say no."})
    refused = released.passgate("sign-off", "last", *APPROVE)
    assert refused.returncode == 2
    assert "have changed since it was judged: the tasks (say-yes), the tracked files" in refused.stderr
    assert verdict_of(released)["decision"] == "INCONCLUSIVE"
    released.git("checkout", "-q", ".")
    released.git("commit", "-q", "--allow-empty", "-m", "Go on")
    refused = released.passgate("sign-off", "last", *APPROVE)
    assert refused.returncode == 2
    assert "the commit (it was" in refused.stderr


def test_of_two_at_the_same_time_one_decides(released: Project) -> None:
    with ExitStack() as stack:
        both = [
            stack.enter_context(released.started(released.command("sign-off", "last", *said)))
            for said in (APPROVE, REJECT)
        ]
        for one in both:
            one.communicate(timeout=200)
    codes = [one.returncode for one in both]
    verdict = verdict_of(released)
    assert codes in ([0, 2], [2, 1])
    assert verdict["decision"] == ("PASS" if codes[0] == 0 else "FAIL")


def test_a_run_is_named_by_its_beginning(released: Project) -> None:
    beginning = released.run_folders()[-1].name[:12]
    assert released.passgate("sign-off", beginning, *APPROVE).returncode == 0
    missing = released.passgate("sign-off", "1999", *APPROVE)
    assert missing.returncode == 2
    assert "no run '1999'" in missing.stderr


def test_bad_usage_is_exit_2(released: Project) -> None:
    for arguments, message in (
        (("last", "--by", "Ada", "--decision", "maybe", "--reason", "r"), "'maybe' is not one of"),
        (("last", "--by", " ", "--decision", "reject", "--reason", "r"), "--by is empty"),
        (("last", "--by", "Ada", "--decision", "reject"), "Missing option '--reason'"),
        (("last", *APPROVE, "--key", "gates.yaml"), "the key gates.yaml is no private key in PEM"),
    ):
        result = released.passgate("sign-off", *arguments)
        assert (result.returncode, message in result.stderr) == (2, True), result.stderr
    assert verdict_of(released)["awaiting_sign_off"] is True


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs OpenSSL")
def test_the_keys_and_signatures_are_those_of_openssl(released: Project, tmp_path: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:sesame", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-passin", "pass:sesame", "-pubout", "-out", "public.pem")
    key = str(tmp_path / "key.pem")
    locked = released.passgate("sign-off", "last", *APPROVE, "--key", key)
    assert locked.returncode == 2
    assert "is encrypted: set PASSGATE_SIGNING_PASSPHRASE" in locked.stderr
    signed = released.passgate("sign-off", "last", *APPROVE, "--key", key, PASSGATE_SIGNING_PASSPHRASE="sesame")
    assert signed.returncode == 0, signed.stderr

    envelope = json.loads((released.run_folders()[-1] / "verdict.intoto.json").read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    (tmp_path / "message").write_bytes(f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload)
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    openssl("pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "message", "-sigfile", "signature")
