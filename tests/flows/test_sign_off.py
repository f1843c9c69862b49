"""A release that pauses in Prefect until somebody has decided, as its UI shows it and resumes it."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.project import Project
from tests.signing import write_gate

RUN = """
import asyncio, sys
from passgate.flows.release_candidate import release_candidate
from passgate.tasks.model.run import RunRequest
request = RunRequest(agent=sys.argv[1], wait_for_sign_off=float(sys.argv[2]))
print("STATE", asyncio.run(release_candidate(request, return_state=True)).name)
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
        self._api = project.environment["PREFECT_API_URL"]
        self._project = project
        self._process = process

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self._api}/{path}", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    @property
    def run(self) -> dict[str, Any]:
        body = {"flows": {"name": {"any_": ["release_candidate"]}}, "sort": "START_TIME_DESC", "limit": 1}
        run: dict[str, Any] = self.post("flow_runs/filter", body)[0]
        return run

    def wait_for_pause(self, *, other_than: str = "") -> str:
        """Wait until the flow pauses; gives what the one who resumes it is shown."""
        pauses = self.run["id"]
        return until(lambda: self._shown(pauses), lambda shown: bool(shown) and shown != other_than)

    def _shown(self, run_id: str) -> str:
        assert self._process.poll() is None, self._process.communicate()
        state = self.run["state"]
        keyset = state["state_details"]["run_input_keyset"] if state["type"] == "PAUSED" else None
        if not keyset:
            return ""
        stored = self.post(f"flow_runs/{run_id}/input/filter", {"prefix": keyset["description"]})
        return str(json.loads(stored[0]["value"])) if stored else ""

    def resume(self, said: dict[str, str]) -> dict[str, Any]:
        answer: dict[str, Any] = self.post(f"flow_runs/{self.run['id']}/resume", {"run_input": said})
        return answer

    def end(self) -> str:
        """The name of the state that the flow ends in."""
        out, error = self._process.communicate(timeout=120)
        names = [line.split()[1] for line in out.splitlines() if line.startswith("STATE ")]
        assert names, error
        assert self.run["state"]["name"] == names[0], "Prefect knows it too"
        return names[0]


def until(look: Callable[[], str], enough: Callable[[str], bool], seconds: float = 120) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = look()
        if enough(seen):
            return seen
        time.sleep(0.3)
    raise TimeoutError


@contextmanager
def running(project: Project, *, seconds: float, agent: str = "") -> Iterator[Flow]:
    before = {entry.name for entry in (project.path / ".passgate/runs").glob("*")}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, agent or f"cli:sh {project.path}/agent.sh", str(seconds)],
        cwd=project.path,
        env=project.full_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: "".join({entry.name for entry in (project.path / ".passgate/runs").glob("*")} - before), bool)
        yield Flow(project, process)
    finally:
        process.kill()
        process.wait()


def verdict_of(project: Project) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((project.run_folders()[-1] / "verdict.json").read_text())
    return verdict


@pytest.mark.slow
def test_the_flow_pauses_until_somebody_approves(release: Project) -> None:
    with running(release, seconds=300) as flow:
        shown = flow.wait_for_pause()
        assert shown.startswith("release_candidate INCONCLUSIVE: awaiting sign-off")
        awaiting = verdict_of(release)
        assert awaiting["awaiting_sign_off"] is True
        for wrong in ({}, {"by": "Ada", "decision": "maybe", "reason": "r"}, {**APPROVE, "by": ""}):
            assert flow.resume(wrong)["status"] == "REJECT"
        refused = flow.resume({**APPROVE, "by": "  "})
        assert refused["status"] == "ACCEPT"
        again = flow.wait_for_pause(other_than=shown)
        assert "The last sign-off was refused: --by is empty" in again
        assert flow.resume(APPROVE)["status"] == "ACCEPT"
        assert flow.end() == "GatePassed"
    verdict = verdict_of(release)
    assert (verdict["decision"], verdict["sign_off"]["by"]) == ("PASS", "Ada")
    assert verdict["sign_off"]["verdict_digest"] in shown


@pytest.mark.slow
def test_the_flow_ends_when_somebody_rejects_on_a_shell(release: Project) -> None:
    with running(release, seconds=300) as flow:
        flow.wait_for_pause()
        said = ("--by", "Bob", "--decision", "reject", "--reason", "no")
        assert release.passgate("sign-off", "last", *said).returncode == 1
        assert flow.end() == "GateFailed"


@pytest.mark.slow
def test_the_flow_does_not_wait_for_ever(release: Project) -> None:
    with running(release, seconds=4) as flow:
        assert flow.end() == "AwaitingSignOff"
    assert verdict_of(release)["awaiting_sign_off"] is True
    said = ("--by", "Ada", "--decision", "approve", "--reason", "later")
    assert release.passgate("sign-off", "last", *said).returncode == 0


@pytest.mark.slow
def test_a_release_that_fails_waits_for_nobody(release: Project) -> None:
    with running(release, seconds=300, agent="nop") as flow:
        assert flow.end() == "GateFailed"
