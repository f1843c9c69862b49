"""Batches of a gate on Prefect's task runners: the verdict and the rows of one process, also when a worker is lost."""

import json
import os
import random
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.flows.counting import Key, asked, begun, finished, said, trials, wait_for_trials, write_counting
from tests.flows.dask_cluster import running_dask, with_mark
from tests.flows.prefect_api import descendants, why_failed
from tests.prefect_servers import PATIENT
from tests.processes import how_to_resume, process_ids
from tests.project import Project
from tests.scenarios import Scenarios
from tests.scenarios.counting import JOBS, TASKS, K, in_one_process
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# A busy machine takes longer to end a cluster than a run waits.
ENDS_IN_PEACE = """
import sys
from passgate.flows import executors
from passgate.flows.process import supervision
from passgate.flows.process.supervisor import main
supervision.SECONDS_TO_INTERRUPT = supervision.SECONDS_TO_EXIT_INTERRUPTED = 240.0
executors._SECONDS_TO_CLOSE = 60.0
sys.exit(main())
"""


@pytest.fixture
def counting(project: Project) -> Iterator[AgentServer]:
    """The agent of a gate of 90 trials, which it counts; it fails one task."""
    with running_agent() as agent:
        agent.replies = [Says(pause=0.1)]
        write_counting(project, agent, tasks=TASKS, k=K, jobs=JOBS, fails="t3")
        yield agent


def what_counts(project: Project) -> Any:
    """What of a run does not depend on when and where it was run."""
    (folder,) = project.run_folders()
    verdict = json.loads((folder / "verdict.json").read_text())
    rows = [(one["task_id"], one["trial"], one["status"], one["reason"], one["score"]) for one in trials(project)]
    assert len(rows) == len(set(rows)), "a trial stands in the journal twice"
    return verdict["decision"], [reason["message"] for reason in verdict["reasons"]], sorted(rows)


def lose_workers(
    project: Project, agent: AgentServer, options: list[str], workers: Callable[[int], list[int]], losses: int
) -> None:
    """Run the gate, kill one of its workers at some moments, and see what the agent was asked for."""
    chosen, lost = random.Random(14), list[tuple[set[Key], int]]()
    with begun(project, *options) as run:
        for loss in range(losses):
            wait_for_trials(project, run, 5 + 18 * loss + chosen.randrange(10))
            wait_until(lambda: run.poll() is not None or workers(run.pid))
            lost.append((finished(project), len(agent.asked)))
            for worker in workers(run.pid)[-1:]:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
        assert run.wait(timeout=600) == 1, said(project)
    for before, calls_before in lost:
        assert before.isdisjoint(asked(agent, calls_before)), "a trial in the journal was run again"
    assert asked(agent).total() <= TASKS * K * (1 + losses / 2), "more was run again than the batch of one worker"
    assert "without Prefect" not in said(project)


def test_lost_workers_of_dask_lose_no_trial_and_repeat_none(
    project: Project, counting: AgentServer, scenario: Scenarios, tmp_path: Path
) -> None:
    with running_dask(tmp_path) as dask:
        options = ["--runner", "dask", "--runner-address", dask.address]
        lose_workers(project, counting, options, lambda _: dask.workers(), losses=2)
    assert what_counts(project) == what_counts(scenario(in_one_process))


@pytest.mark.parametrize(("runner", "mark"), [("process", "spawn_main"), ("ray", "ray::")])
def test_a_lost_worker_loses_what_is_in_flight(
    project: Project, counting: AgentServer, scenario: Scenarios, runner: str, mark: str
) -> None:
    options = ["--runner", runner, "--workers", "2"]
    lose_workers(project, counting, options, lambda run: with_mark(descendants(run), mark), losses=1)
    assert what_counts(project) == what_counts(scenario(in_one_process))
    assert re.match(r"0/\d+ trials passed; output_check: ", why_failed(project, "golden/t3"))


def test_a_process_tells_the_embedded_engine_of_each_batch_and_agents_do_not_know_where_that_is(
    bare_project: Project, tmp_path: Path
) -> None:
    home = tmp_path / "prefect"
    bare_project.environment = {**PATIENT, "PREFECT_HOME": str(home)}
    with running_agent() as agent:
        write_counting(bare_project, agent, tasks=2, k=30, jobs=JOBS)
    bare_project.write("agent.sh", 'echo "${PREFECT_API_URL-yes}"')
    agent_named = f"cli:sh {bare_project.path}/agent.sh"
    run = ("run", "ci_merge", "--agent", agent_named, "--runner", "process", "--workers", "1")
    ended = bare_project.passgate(*run)
    assert (ended.returncode, "without Prefect" in ended.stderr) == (0, False), ended.stdout + ended.stderr
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        shown = database.execute("SELECT name, state_name FROM task_run").fetchall()
    batches = [state for name, state in shown if name.startswith(("t0", "t1"))]
    assert batches
    assert set(batches) == {"Completed"}


# What a process of a Ray cluster does that begins while the cluster ends.
MAKES_FOLDERS = """
import os, sys, time
for _ in range(300_000):
    os.makedirs(sys.argv[1].partition("=")[2] + "/logs", exist_ok=True)
    time.sleep(0.001)
"""


@pytest.mark.parametrize(
    ("runner", "left"), [("process", []), ("dask", ["global.lock", "purge.lock"]), ("ray", ["session_latest"])]
)
def test_a_signal_ends_a_run_on_every_task_runner_and_leaves_nothing_behind(
    project: Project, counting: AgentServer, runner: str, left: list[str]
) -> None:
    counting.replies = [Says(pause=300)]
    with TemporaryDirectory(prefix="t") as temporary:  # a short path, for the sockets of Ray
        project.environment["TMPDIR"] = temporary
        command = [sys.executable, "-c", ENDS_IN_PEACE]
        with begun(project, "--runner", runner, "--workers", "2", command=command) as run:
            wait_until(lambda: run.poll() is not None or counting.asked != [])
            commands = [
                [sys.executable, "-c", MAKES_FOLDERS, f"--session-dir={session}"]
                for session in Path(temporary).glob("ray/session_2*")
            ]
            with ExitStack() as stack:
                late = [stack.enter_context(project.started(command)) for command in commands]
                run.terminate()
                assert run.wait(timeout=300) == 130, said(project)
                wait_until(lambda: all(one.poll() is not None for one in late))
            assert said(project).splitlines()[-1].endswith(how_to_resume(project.path))
            assert "Traceback" not in said(project)
            assert "SIGTERM" not in said(project)
            assert sorted(path.name for path in Path(temporary).glob("*/*")) == left
            wait_until(lambda: descendants(run.pid) == with_mark(process_ids(), temporary, "environ") == [])
    assert len(finished(project)) < TASKS * K
