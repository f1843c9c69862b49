"""A release that pauses in Prefect until somebody has decided, as its UI shows it and resumes it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.flows.prefect_api import api, flow_run_of
from tests.gates import verdict_of
from tests.project import Project
from tests.signing import write_gate
from tests.waiting import wait_until
from tests.warm import CODE

pytestmark = pytest.mark.slow

RUN = """
import asyncio, sys
from passgate.flows import release_candidate as release
release._POLL_SECONDS = 1
options = {"agent": sys.argv[1], "wait_for_sign_off": float(sys.argv[2])}
print("STATE", asyncio.run(release.release_candidate(**options, return_state=True)).name)
"""
APPROVE = {"by": "Ada", "decision": "approve", "reason": "read it"}


@pytest.fixture
def release(project: Project) -> Project:
    """A commit that is to be released."""
    write_gate(project.path)
    project.write("agent.sh", "echo yes")
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Release")
    return project


class Flow:
    """A flow of a release that goes on in a process of its own, seen through Prefect's API."""

    def __init__(self, project: Project, process: "subprocess.Popen[str]") -> None:
        self._project, self._process = project, process

    def wait_for_pause(self, *, other_than: str = "") -> str:
        """Wait until the flow pauses; gives what the one who resumes it is shown."""
        wait_until(lambda: self._shown() not in {"", other_than})
        return self._shown()

    def _shown(self) -> str:
        assert self._process.poll() is None, self._process.communicate()
        flow_run = flow_run_of(self._project)
        keyset = flow_run["state"]["state_details"]["run_input_keyset"] if flow_run["state_type"] == "PAUSED" else None
        if not keyset:
            return ""
        stored = self._post(f"{flow_run['id']}/input/filter", {"prefix": keyset["description"]})
        return str(json.loads(stored[0]["value"])) if stored else ""

    def resume(self, said: dict[str, str]) -> str:
        """How Prefect answers who resumes the flow."""
        answer: str = self._post(f"{flow_run_of(self._project)['id']}/resume", {"run_input": said})["status"]
        return answer

    def _post(self, path: str, content: dict[str, Any]) -> Any:
        return api(self._project, "POST", f"flow_runs/{path}", content)

    def end(self) -> str:
        """The name of the state that the flow ends in."""
        out, error = self._process.communicate(timeout=300)
        names = [line.split()[1] for line in out.splitlines() if line.startswith("STATE ")]
        assert names, error
        assert flow_run_of(self._project)["state"]["name"] == names[0], "Prefect knows it too"
        return names[0]


@contextmanager
def running(project: Project, *, seconds: float, agent: str = "cli:sh {project}/agent.sh") -> Iterator[Flow]:
    with project.started([*CODE, RUN, agent, str(seconds)]) as process:
        wait_until(lambda: any(project.path.glob(".passgate/runs/*")))
        yield Flow(project, process)


def test_the_flow_pauses_until_somebody_approves(release: Project) -> None:
    with running(release, seconds=300) as flow:
        shown = flow.wait_for_pause()
        assert shown.startswith("release_candidate INCONCLUSIVE: awaiting sign-off")
        awaiting = verdict_of(release)
        assert awaiting["awaiting_sign_off"] is True
        for wrong in ({}, {"by": "Ada", "decision": "maybe", "reason": "r"}, {**APPROVE, "by": ""}):
            assert flow.resume(wrong) == "REJECT"
        assert flow.resume({**APPROVE, "by": "  "}) == "ACCEPT"
        again = flow.wait_for_pause(other_than=shown)
        assert "The last sign-off was refused: --by is empty" in again
        assert flow.resume(APPROVE) == "ACCEPT"
        assert flow.end() == "GatePassed"
    verdict = verdict_of(release)
    assert (verdict["decision"], verdict["sign_off"]["by"]) == ("PASS", "Ada")
    assert verdict["sign_off"]["verdict_digest"] in shown


def test_the_flow_ends_when_somebody_rejects_on_a_shell(release: Project) -> None:
    with running(release, seconds=300) as flow:
        flow.wait_for_pause()
        said = ("--by", "Bob", "--decision", "reject", "--reason", "no")
        assert release.passgate("sign-off", "last", *said).returncode == 1
        assert flow.end() == "GateFailed"


def test_the_flow_does_not_wait_for_ever(release: Project) -> None:
    with running(release, seconds=2) as flow:
        assert flow.end() == "AwaitingSignOff"
    assert verdict_of(release)["awaiting_sign_off"] is True
    said = ("--by", "Ada", "--decision", "approve", "--reason", "later")
    assert release.passgate("sign-off", "last", *said).returncode == 0


def test_a_release_that_fails_waits_for_nobody(release: Project) -> None:
    with running(release, seconds=300, agent="nop") as flow:
        assert flow.end() == "GateFailed"
