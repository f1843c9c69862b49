"""`kill -9` of everything, again and again: a run repeats nothing that has finished, and loses nothing."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from distributed import Client, Future

from tests.flows.counting import Key, asked, begun, finished, said, trials, wait_for_trials, write_counting
from tests.flows.dask_cluster import running_dask
from tests.processes import worker_of
from tests.project import Project
from tests.unit.agents.agent_server import Says, running_agent
from tests.waiting import wait_until

TASKS, K, KILLS, JOBS = 10, 30, 20, 4


def kill_again_and_again(project: Project, pause: float, later: int, *options: str) -> "Counter[Key]":
    """Run a gate whose trials take `pause` seconds, kill it twenty times, each time up to `later` trials later, and
    resume it. Return how often each trial was run.
    """
    moments = random.Random(11)
    with running_agent() as agent:
        agent.replies = [Says(pause=pause)]
        write_counting(project, agent, tasks=TASKS, k=K, jobs=JOBS)
        for kill in range(KILLS):
            before, asked_before = finished(project), len(agent.asked)
            # From its first second, before any trial, to some trials later.
            wanted = len(before) + moments.randrange(later)
            with begun(project, *options, *(("--resume", "last") if kill else ())) as run:
                wait_until(lambda: run.poll() is not None or any(project.path.glob(".passgate/runs/*/plan.json")))
                wait_for_trials(project, run, wanted)
                time.sleep(moments.random() * 0.2)
                assert run.poll() is None, said(project)
            assert before.isdisjoint(asked(agent, asked_before)), "a trial in the journal was run again"
        assert len(finished(project)) < TASKS * K
        last = project.passgate("run", "ci_merge", *options, "--resume", "last", timeout=1800)
    assert last.returncode == 0, last.stdout + last.stderr
    every = {(f"t{task}", trial) for task in range(TASKS) for trial in range(K)}
    assert finished(project) == every
    assert len(trials(project)) == len(every), "a trial stands in the journal twice"
    rows = pd.read_parquet(project.path / ".passgate/history/trials")
    assert Counter(rows["status"]) == {"passed": len(every)}
    assert len(project.run_folders()) == 1
    calls = asked(agent)
    assert set(calls) == every
    return calls


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_that_is_killed_twenty_times_repeats_only_what_was_in_flight_and_loses_nothing(
    bare_project: Project,
) -> None:
    temporary = bare_project.path / "temporary"
    temporary.mkdir()
    bare_project.environment |= {"TMPDIR": str(temporary), "PASSGATE_ENGINE": "none"}
    calls = kill_again_and_again(bare_project, 0.05, 10)
    assert calls.total() <= len(calls) + KILLS * JOBS, "more was repeated than was in flight"
    assert list(temporary.glob("*/*")) == [], "what killed processes have left is swept"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_on_dask_that_is_killed_twenty_times_repeats_no_trial_of_its_journal_and_loses_none(
    project: Project, tmp_path: Path
) -> None:
    with running_dask(tmp_path) as dask:
        # A batch comes to the journal as a whole: a kill a few trials later leaves trials for the next kills.
        calls = kill_again_and_again(project, 0.3, 4, "--runner", "dask", "--runner-address", dask.address)
    # About forty trials take ten seconds on these slots.
    assert calls.total() <= len(calls) + KILLS * 2 * 40, "more was repeated than the batches in flight"


@pytest.mark.slow
def test_a_batch_of_a_killed_run_that_is_still_queued_at_a_cluster_runs_no_trial_once_the_run_is_resumed(
    project: Project, tmp_path: Path
) -> None:
    free = tmp_path / "free"
    with running_agent() as agent, running_dask(tmp_path) as dask, Client(dask.address) as client:
        agent.replies = [Says()]
        write_counting(project, agent, tasks=2, k=3, jobs=JOBS)
        options = ("--runner", "dask", "--runner-address", dask.address)

        def queued() -> set[str]:
            """The keys of what the workers do and what waits for them."""
            return {key for keys in client.processing().values() for key in keys}

        busy = ["sh", "-c", f"until [ -e {free} ]; do sleep 0.1; done"]
        client.wait_for_workers(len(dask.nannies))
        others = [client.submit(subprocess.call, busy, pure=False) for _ in dask.nannies]
        with begun(project, *options):
            wait_until(lambda: len(queued()) == 2 * len(others))
            # A cluster drops the batches of a client that is gone when it hears of it: here it never does.
            client.publish_dataset(kept=[Future(key, client=client) for key in queued()])
        with begun(project, *options, "--resume", "last") as resumed:
            wait_until(lambda: resumed.poll() is not None or len(queued()) == 3 * len(others))
            free.touch()
            assert resumed.wait(timeout=600) == 0, said(project)
        wait_until(lambda: not queued())
        assert asked(agent) == Counter(finished(project)), "a trial was run by two batches"


@pytest.mark.slow
def test_an_agent_is_not_late_because_the_gate_was_stopped(bare_project: Project) -> None:
    project = bare_project
    project.environment |= {"PASSGATE_ENGINE": "none"}
    with running_agent() as agent:
        agent.replies = [Says(pause=60), Says()]
        write_counting(project, agent, tasks=1, k=1, jobs=1)
        gates = (project.path / "gates.yaml").read_text()
        project.write("gates.yaml", gates.replace("max_steps: 20", "max_steps: 20, budgets: {max_seconds: 4}"))
        with begun(project) as run:
            wait_until(lambda: agent.asked != [])
            worker = worker_of(run.pid)
            os.kill(worker, signal.SIGSTOP)
            time.sleep(8)
            os.kill(worker, signal.SIGCONT)
            assert run.wait(timeout=600) == 0
    (trial,) = trials(project)
    assert (trial["status"], trial["attempts"]) == ("passed", 2)
