"""Flow runs of Prefect that are tried again or cancelled: the run of the gate stays the same."""

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime
from typing import Any

import pytest

from tests.cli.test_run import WRITES_OK, gate_of
from tests.processes import marked_processes
from tests.project import Project
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

RUN = """
import asyncio, sys
from passgate.flows.ci_merge import ci_merge
from passgate.tasks.model.run import RunRequest
flow = ci_merge.with_options(retries=9, retry_delay_seconds=2)
state = asyncio.run(flow(RunRequest(agent=sys.argv[1]), return_state=True))
print("STATE", state.name)
"""
RESUME = """
import asyncio, sys
from passgate.flows.ci_merge import ci_merge
from passgate.tasks.model.run import RunRequest
state = asyncio.run(ci_merge(RunRequest(run=sys.argv[1]), return_state=True))
print("STATE", state.name)
"""
IN_A_SANDBOX = WRITES_OK + "environment: {{sandbox: flaky}}\n"


def api(project: Project, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """What the server answers; a busy one is asked again."""
    request = urllib.request.Request(
        f"{project.environment['PREFECT_API_URL']}/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method=method,
    )
    answers: list[Any] = []

    def answered() -> bool:
        try:
            with urllib.request.urlopen(request) as response:
                content = response.read()
            answers.append(json.loads(content) if content else None)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
        return bool(answers)

    wait_until(answered)
    return answers[0]


def flow_run(project: Project) -> dict[str, Any]:
    """The newest flow run of ci_merge that has begun."""
    begun = {"start_time": {"is_null_": False}}
    body = {"flows": {"name": {"any_": ["ci_merge"]}}, "flow_runs": begun, "sort": "START_TIME_DESC", "limit": 1}
    found: dict[str, Any] = api(project, "POST", "flow_runs/filter", body)[0]
    return found


def seconds_to_cancel(project: Project, flow_run_id: str) -> float:
    """How long a flow run took from the request to cancel it to the state that says it is cancelled."""
    states = api(project, "GET", f"flow_run_states/?flow_run_id={flow_run_id}")
    times = {
        kind: [datetime.fromisoformat(one["timestamp"]) for one in states if one["type"] == kind]
        for kind in ("CANCELLING", "CANCELLED")
    }
    return (min(times["CANCELLED"]) - min(times["CANCELLING"])).total_seconds()


def flow(project: Project, agent: str) -> subprocess.CompletedProcess[str]:
    """A flow with retries, in a process of its own, as a worker of Prefect would start it."""
    return project.run([sys.executable, "-c", RUN, agent], timeout=200)


def journal_of(project: Project) -> bytes:
    """The journal of the one run, as far as there is one."""
    return b"".join(file.read_bytes() for file in project.path.glob(".passgate/runs/*/journal.jsonl"))


def test_retries_carry_on_the_same_run_and_repeat_no_finished_trial(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/steady.yaml", WRITES_OK.format(name="steady"))
    project.write("suites/golden/flaky.yaml", IN_A_SANDBOX.format(name="flaky"))
    healthy = project.path / "healthy"
    project.write("suites/_shared/sandboxes/flaky/sandbox.yaml", f"setup: ['[ -e {healthy} ]']\n")
    project.write("agent.sh", "printf ok > result.txt")

    def heal() -> None:
        wait_until(lambda: any(project.path.glob(".passgate/runs/*/verdict.json")))
        healthy.touch()

    healing = threading.Thread(target=heal)
    healing.start()
    ended = flow(project, f"cli:sh {project.path}/agent.sh")
    healing.join()
    assert "STATE GatePassed" in ended.stdout, ended.stdout + ended.stderr
    (folder,) = project.run_folders()
    ran = [json.loads(line)["trial"] for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [one["status"] for one in ran if one["task_id"] == "steady"] == ["passed"] * 2
    assert flow_run(project)["run_count"] > 1


def test_a_failed_gate_is_not_tried_again(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    ended = flow(project, "nop")
    assert "STATE GateFailed" in ended.stdout, ended.stdout + ended.stderr
    assert (flow_run(project)["state_name"], flow_run(project)["run_count"]) == ("GateFailed", 1)


def test_a_run_that_is_cancelled_in_prefect_keeps_its_journal_and_says_how_it_goes_on(project: Project) -> None:
    gate_of(project, k=2, seconds=600)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("suites/golden/b.yaml", WRITES_OK.format(name="b").replace("prompt: Write", "prompt: Hang, write"))
    mark = f"4242.{time.time_ns()}"
    agent = project.write("agent.sh", f"printf ok > result.txt; if grep -q Hang $1; then sleep {mark}; fi")
    command = project.command("run", "ci_merge", "--agent", f"cli:sh {agent} {{prompt_file}}")
    with project.started(command) as run:
        wait_until(lambda: marked_processes(f"sleep\x00{mark}") != [] and journal_of(project).count(b"\n") == 2)
        cancelling = {"state": {"type": "CANCELLING"}, "force": True}
        api(project, "POST", f"flow_runs/{flow_run(project)['id']}/set_state", cancelling)
        _, stderr = run.communicate(timeout=200)
    assert run.returncode == 130, stderr
    (folder,) = project.run_folders()
    assert f"passgate run ci_merge --resume {folder.name}" in stderr
    state = flow_run(project)["state"]
    assert (state["type"], folder.name in state["message"]) == ("CANCELLED", True)
    assert seconds_to_cancel(project, flow_run(project)["id"]) < 30
    assert journal_of(project).count(b"\n") == 2
    assert marked_processes(f"sleep\x00{mark}") == []
    agent.write_text("printf ok > result.txt")
    assert project.passgate("run", "ci_merge", "--resume", folder.name).returncode == 0
    resumed = flow_run(project)
    assert (resumed["state_name"], resumed["name"]) == ("GatePassed", f"ci_merge cli:sh {agent} {{prompt_file}}")
    assert resumed["parameters"]["request"]["agent"] == f"cli:sh {agent} {{prompt_file}}"


def test_the_flow_run_of_a_resumed_run_is_named_after_the_agent_of_its_plan(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    assert project.passgate("run", "ci_merge", "--agent", "nop", "--engine", "none").returncode == 1
    (folder,) = project.run_folders()
    ended = project.run([sys.executable, "-c", RESUME, folder.name], timeout=200)
    assert "STATE GateFailed" in ended.stdout, ended.stdout + ended.stderr
    assert flow_run(project)["name"] == "ci_merge nop"
