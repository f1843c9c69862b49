"""`passgate sign-off` and `passgate verify` after a run: what a release goes through."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import Here, exits, refused, told
from tests.gates import newest_run, shell_agent, verdict_of
from tests.object_store import ObjectStore, object_store
from tests.project import Project
from tests.scenarios.integrity import commit
from tests.signing import a_run_that_awaits, write_gate, write_keys

__all__ = ["object_store"]

APPROVE = ("--by", "Ada", "--decision", "approve", "--reason", "read every transcript")
REJECT = ("--by", "Ada", "--decision", "reject", "--reason", "too slow")
RUN = ("run", "release_candidate", "--engine", "none")


def commit_gate(project: Project) -> tuple[str, str]:
    """Commit a gate that wants a sign-off, and an agent that passes it; the option that names the agent."""
    write_gate(project.path)
    agent = shell_agent(project, "echo yes")
    commit(project, "Release")
    return agent


@pytest.fixture
def released(here: Here) -> Here:
    """A commit whose release gate awaits a sign-off."""
    a_run_that_awaits(commit_gate(here)[1])
    return here


@pytest.mark.slow
def test_a_release_is_run_approved_signed_and_verified(here: Here, tmp_path: Path) -> None:
    run = exits(here, 3, *RUN, *commit_gate(here))
    assert "release_candidate INCONCLUSIVE: awaiting sign-off" in run.stdout
    private, public = write_keys(tmp_path)
    signed = told(here, "sign-off", "last", *APPROVE, "--key", str(private))
    assert signed.splitlines()[0] == "release_candidate PASS: approved by Ada, 3 of 3 trials passed"
    assert "verdict.intoto.json" in signed
    assert verdict_of(here)["decision"] == "PASS"
    folder = newest_run(here)
    assert "approved by Ada" in (folder / "summary.md").read_text()

    verify = ("verify", str(folder / "verdict.intoto.json"), "--key", str(public))
    verified = told(here, *verify)
    lines = verified.splitlines()
    assert [line[:8].strip() for line in lines[:5]] == ["ok"] * 5
    assert lines[-1] == "Everything is as signed"
    head = here.git("rev-parse", "HEAD")
    for said in ("release_candidate PASS", "approve by Ada", "read every transcript", head):
        assert said in verified
    (folder / "verdict.json").write_text((folder / "verdict.json").read_text().replace("Ada", "Bob"))
    assert "differs  verdict.json" in exits(here, 1, *verify).stdout


@pytest.mark.slow
def test_a_release_at_a_url_is_signed_off_in_another_clone_which_knows_it_then(
    bare_project: Project, object_store: ObjectStore, tmp_path: Path
) -> None:
    agent, url = commit_gate(bare_project), object_store.new_url()
    clone = Project(tmp_path / "clone", object_store.environment)
    bare_project.git("clone", "-q", str(bare_project.path), str(clone.path))
    bare_project.environment = object_store.environment
    exits(bare_project, 3, *RUN, *agent, "--run-store", url)
    private, public = write_keys(tmp_path)
    told(clone, "sign-off", f"{url}/last", *APPROVE, "--key", str(private))
    kept = {name.partition("/")[2] for name in object_store.keys(url)}
    assert {"verdict.intoto.json", "report.html", "report/trials-1.html"} <= kept
    told(bare_project, "verify", f"{url}/last", "--key", str(public))
    told(clone, "report", "last")


def test_a_release_is_rejected_once_and_for_all(released: Here) -> None:
    assert "release_candidate FAIL: rejected by Ada" in exits(released, 1, "sign-off", "last", *REJECT).stdout
    assert "is signed off already: rejected by Ada" in refused(released, "sign-off", "last", *APPROVE)
    assert verdict_of(released)["decision"] == "FAIL"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1999", *APPROVE), "no run '1999'"),
        (("last", "--by", "Ada", "--decision", "maybe", "--reason", "r"), "'maybe' is not one of"),
        (("last", "--by", " ", "--decision", "reject", "--reason", "r"), "--by is empty"),
        (("last", "--by", "Ada", "--decision", "reject"), "Missing option '--reason'"),
        (("last", *APPROVE, "--key", "gates.yaml"), "the key gates.yaml is no private key in PEM"),
    ],
)
def test_bad_usage_is_exit_2(released: Here, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(released, "sign-off", *arguments)
    assert verdict_of(released)["awaiting_sign_off"] is True


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs OpenSSL")
def test_the_keys_and_signatures_are_those_of_openssl(released: Here, tmp_path: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:sesame", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-passin", "pass:sesame", "-pubout", "-out", "public.pem")
    run = newest_run(released)
    sign = ("sign-off", run.name[:12], *APPROVE, "--key", str(tmp_path / "key.pem"))
    assert "is encrypted: set PASSGATE_SIGNING_PASSPHRASE" in refused(released, *sign)
    told(released, *sign, PASSGATE_SIGNING_PASSPHRASE="sesame")

    envelope = json.loads((run / "verdict.intoto.json").read_text())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"]
    (tmp_path / "message").write_bytes(f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload)
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    openssl("pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "message", "-sigfile", "signature")
