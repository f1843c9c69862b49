"""`passgate sign-off` after a run: what a release goes through."""

from pathlib import Path

import pytest

from tests.cli.commands import Here, exits, refused, told
from tests.gates import newest_run, shell_agent, verdict_of
from tests.object_store import ObjectStore, object_store
from tests.project import Project
from tests.scenarios.integrity import commit
from tests.signing import a_run_that_awaits, write_gate

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
def test_a_release_is_run_and_approved(here: Here) -> None:
    run = exits(here, 3, *RUN, *commit_gate(here))
    assert "release_candidate INCONCLUSIVE: awaiting sign-off" in run.stdout
    signed = told(here, "sign-off", "last", *APPROVE)
    assert signed.splitlines()[0] == "release_candidate PASS: approved by Ada, 3 of 3 trials passed"
    assert verdict_of(here)["decision"] == "PASS"
    assert "approved by Ada" in (newest_run(here) / "summary.md").read_text()


@pytest.mark.slow
def test_a_release_at_a_url_is_signed_off_in_another_clone_which_knows_it_then(
    bare_project: Project, object_store: ObjectStore, tmp_path: Path
) -> None:
    agent, url = commit_gate(bare_project), object_store.new_url()
    clone = Project(tmp_path / "clone", object_store.environment)
    bare_project.git("clone", "-q", str(bare_project.path), str(clone.path))
    bare_project.environment = object_store.environment
    exits(bare_project, 3, *RUN, *agent, "--run-store", url)
    told(clone, "sign-off", f"{url}/last", *APPROVE)
    kept = {name.partition("/")[2] for name in object_store.keys(url)}
    assert {"verdict.json", "report.html", "report/trials-1.html"} <= kept
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
    ],
)
def test_bad_usage_is_exit_2(released: Here, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(released, "sign-off", *arguments)
    assert verdict_of(released)["awaiting_sign_off"] is True
