"""Flow runs of Prefect that are tried again or cancelled: the run of the gate stays the same."""

import json
import subprocess
import threading
import time

import pytest

from tests.flows.prefect_api import api, flow_run_of
from tests.gates import WRITES_OK, gate_of
from tests.processes import marked_processes
from tests.project import Project
from tests.waiting import wait_until
from tests.warm import CODE

pytestmark = pytest.mark.slow

RUN = """
import asyncio, sys
from passgate.flows.ci_merge import ci_merge
flow = ci_merge.with_options(retries=99, retry_delay_seconds=1)
state = asyncio.run(flow(**{sys.argv[1]: sys.argv[2]}, return_state=True))
print("STATE", state.name)
"""
IN_A_SANDBOX = WRITES_OK + "environment: {{sandbox: flaky}}\n"


def flow(project: Project, option: str, value: str) -> subprocess.CompletedProcess[str]:
    """A flow with retries, in a process of its own, as a worker of Prefect would start it."""
    return project.run([*CODE, RUN, option, value])


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
    ended = flow(project, "agent", f"cli:sh {project.path}/agent.sh")
    healing.join()
    assert "STATE GatePassed" in ended.stdout, ended.stdout + ended.stderr
    (folder,) = project.run_folders()
    ran = [json.loads(line)["trial"] for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [one["status"] for one in ran if one["task_id"] == "steady"] == ["passed"] * 2
    assert flow_run_of(project)["run_count"] > 1


def test_a_failed_gate_is_not_tried_again(project: Project) -> None:
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    ended = flow(project, "agent", "nop")
    assert "STATE GateFailed" in ended.stdout, ended.stdout + ended.stderr
    begun = flow_run_of(project)
    assert (begun["state_name"], begun["run_count"]) == ("GateFailed", 1)


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
        api(project, "POST", f"flow_runs/{flow_run_of(project)['id']}/set_state", cancelling)
        _, stderr = run.communicate(timeout=300)
    assert run.returncode == 130, stderr
    (folder,) = project.run_folders()
    assert f"passgate run ci_merge --resume {folder.name}" in stderr
    state = flow_run_of(project)["state"]
    assert (state["type"], folder.name in state["message"]) == ("CANCELLED", True)
    assert journal_of(project).count(b"\n") == 2
    assert marked_processes(f"sleep\x00{mark}") == []
    agent.write_text("printf ok > result.txt")
    assert project.passgate("run", "ci_merge", "--resume", folder.name).returncode == 0
    resumed = flow_run_of(project)
    assert (resumed["state_name"], resumed["name"]) == ("GatePassed", f"ci_merge cli:sh {agent} {{prompt_file}}")
    assert resumed["parameters"]["agent"] == f"cli:sh {agent} {{prompt_file}}"


RESOLVE = """
import asyncio, json, os
from prefect.blocks.system import Secret
from prefect.variables import Variable
from passgate.flows.flow_runs import resolve_environment
from passgate.tasks.errors import UsageError

async def main():
    await Secret(value="s3cret-of-a-block").asave("a-key-of-tests", overwrite=True)
    await Variable.aset("a_place_of_tests", "s3://bucket/history", overwrite=True)
    try:
        await resolve_environment()
    except UsageError as error:
        return str(error)
    return {name: os.environ[name] for name in ("A_KEY", "A_PLACE", "PLAIN")}

print(json.dumps(asyncio.run(main())))
"""
NAMED = {"A_KEY": "prefect-secret:a-key-of-tests", "A_PLACE": "prefect-variable:a_place_of_tests", "PLAIN": "as it is"}


def test_a_flow_run_gets_what_prefect_keeps_under_the_names(project: Project) -> None:
    ended = project.run([*CODE, RESOLVE], **NAMED)
    expected = {"A_KEY": "s3cret-of-a-block", "A_PLACE": "s3://bucket/history", "PLAIN": "as it is"}
    assert json.loads(ended.stdout) == expected, ended.stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"A_KEY": "prefect-secret:none"}, "Prefect has no Secret block 'none', which A_KEY names"),
        ({"A_PLACE": "prefect-variable:none"}, "Prefect has no variable 'none', which A_PLACE names"),
    ],
)
def test_a_name_that_prefect_does_not_know_is_refused(project: Project, changed: dict[str, str], said: str) -> None:
    ended = project.run([*CODE, RESOLVE], **NAMED | changed)
    assert json.loads(ended.stdout) == said, ended.stderr
