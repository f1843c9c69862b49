"""The seam where trials run: a run in this process, and the batches of one that runs elsewhere."""

import asyncio
import json
import os
import re
import subprocess
import textwrap
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from passgate import __version__
from passgate.tasks.errors import EngineError, StorageError, UsageError
from passgate.tasks.execution.coordinator import OpenExecutor, planned_batches
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.remote import RunRemotely, remote_executor
from passgate.tasks.execution.remote_batch import run_batch
from passgate.tasks.execution.worker import in_process
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.judge import judge
from passgate.tasks.load import load
from passgate.tasks.measure import measure
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.planning.baseline import baseline_pool, read_rows
from passgate.tasks.run import run
from tests.builders import task_document
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import wait_until
from tests.warm import CODE, popen

GATES = """
version: 1
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20}
gates:
  ci_merge: {suites: [golden], blocks_on: [golden_regression, task_failed], regression: {mode: strict}}
concurrency: {trials: 4}
"""
AGENT = """
import pathlib, time

def agent(attempt):
    folder = pathlib.Path(__file__).parent
    with (folder / "calls.log").open("a") as log:
        log.write(f"{attempt.task_id} {attempt.trial}\\n")
    if (folder / "slow").exists():
        time.sleep(0.1)
    return "no" if (attempt.task_id, attempt.trial) == ("b", 1) else "yes"
"""
STARTS_A_BATCH = """
import subprocess, time
subprocess.Popen({command}, stdin=open({work!r}))
time.sleep(999)
"""
BATCH = """
import cloudpickle, sys
try:
    cloudpickle.load(sys.stdin.buffer)()
except Exception as error:
    cloudpickle.dump(error, sys.stdout.buffer)
"""


@pytest.fixture
def repository(bare_project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three golden tasks, of which the agent fails one."""
    bare_project.write("gates.yaml", GATES)
    for name in ("a", "b", "c"):
        bare_project.write(f"suites/golden/{name}.yaml", json.dumps(task_document(task_id=name)))
    bare_project.write("agent.py", textwrap.dedent(AGENT))
    monkeypatch.chdir(bare_project.path)
    return bare_project


def calls(project: Project) -> list[str]:
    log = project.path / "calls.log"
    return sorted(log.read_text().splitlines()) if log.exists() else []


def planned() -> Plan:
    return load(GateName.CI_MERGE, RunRequest(agent="python:agent:agent"))


def judged(plan: Plan, open_executor: OpenExecutor) -> tuple[Verdict, list[Trial]]:
    """A run from its plan to its verdict, with an executor."""
    pool = baseline_pool(plan, read_rows(plan))
    trials = asyncio.run(run(open_executor, plan, pool))
    return judge(plan, trials, measure(plan, trials, pool(trials)), pool(trials), ""), trials


HERE: OpenExecutor = partial(in_process, Engine())


def elsewhere(run_one: RunRemotely, workers: int = 2) -> OpenExecutor:
    """An executor of batches in other processes."""
    return lambda plan, store, state: remote_executor(run_one, plan, store, state, workers)


def first_batch(plan: Plan, **changes: Any) -> RemoteBatch:
    """A batch with the planned trials of the first task, which this process coordinates."""
    store = RunStore.of(plan.run_id)
    store.write_coordinator("first")
    batch = RemoteBatch(
        name="first",
        trials=planned_batches(plan.tasks)[0].trials,
        location=store.location,
        plan_digest=store.plan_digest(),
        coordinator="first",
        passgate_version=__version__,
        trials_at_once=1,
    )
    return batch.model_copy(update=changes)


async def in_thread(batch: RemoteBatch) -> BatchResult:
    return await asyncio.to_thread(run_batch, batch)


def test_a_worker_with_another_version_runs_nothing_and_says_which_to_install(
    repository: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passgate.tasks.execution.remote_batch.__version__", "0.0.9")
    has = f"has passgate 0.0.9, and the run is coordinated by {__version__}: install passgate {__version__} there"
    with pytest.raises(UsageError, match=re.escape(has)):
        judged(planned(), elsewhere(in_thread))
    assert calls(repository) == []


@pytest.mark.parametrize("successor", ["second", ""])
@pytest.mark.parametrize("seconds", [0, 999])
def test_a_batch_stops_with_its_trials_when_another_process_coordinates_the_run_or_none_does(
    repository: Project, successor: str, seconds: int
) -> None:
    plan = planned()
    file = RunStore.of(plan.run_id).here / "coordinator"
    taken_over = f'pathlib.Path("{file}").write_text("{successor}"); time.sleep({seconds})'
    repository.write("agent.py", textwrap.dedent(AGENT).replace("time.sleep(0.1)", taken_over))
    (repository.path / "slow").touch()
    batch = first_batch(plan)
    for _ in range(2):
        with pytest.raises(EngineError, match="nobody coordinates it any more"):
            run_batch(batch)
    assert calls(repository) == ["a 0"], "no trial begins then, and none of a batch that begins later"


def test_a_batch_at_a_url_runs_nothing_that_begins_after_its_coordinator_was_replaced(repository: Project) -> None:
    plan = planned()
    batch = first_batch(plan)
    folder = RunStore.of(plan.run_id).here
    (folder / "coordinator").write_text("second")
    with pytest.raises(EngineError, match="nobody coordinates it any more"):
        run_batch(batch.model_copy(update={"location": folder.as_uri()}))
    assert calls(repository) == []


def test_a_run_that_goes_on_in_this_process_ends_batches_that_are_left_elsewhere(repository: Project) -> None:
    plan = planned()
    batch = first_batch(plan)
    judged(plan, HERE)
    called = calls(repository)
    with pytest.raises(EngineError, match="nobody coordinates it any more"):
        run_batch(batch)
    assert calls(repository) == called


@pytest.mark.slow
def test_a_batch_stops_when_the_process_that_has_started_it_is_killed(repository: Project) -> None:
    (repository.path / "slow").touch()
    plan = planned()
    batch = first_batch(plan, trials=tuple((task.task_id, number) for task in plan.tasks for number in range(200)))
    work = repository.write("batch.pickle", "")
    work.write_bytes(cloudpickle.dumps(partial(run_batch, batch)))
    code = STARTS_A_BATCH.format(command=[*CODE, BATCH], work=str(work))
    with popen([*CODE, code], cwd=Path.cwd(), env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        wait_until(lambda: bool(calls(repository)))
        parent.kill()
        assert "nobody coordinates it any more" in str(cloudpickle.load(parent.stdout))


def test_trials_that_the_journal_has_lost_give_no_verdict(repository: Project) -> None:
    plan = planned()

    async def losing(batch: RemoteBatch) -> BatchResult:
        os.truncate(RunStore.of(plan.run_id).journal, 0)
        return await in_thread(batch)

    with pytest.raises(StorageError, match=r"has lost \d trials"):
        judged(plan, elsewhere(losing, workers=1))


def test_the_cost_cap_is_exact_over_four_workers(
    repository: Project, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.says(Says("yes"))  # for a cent
    repository.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    repository.write("suites/golden/d.yaml", json.dumps(task_document(task_id="d")))
    monkeypatch.setenv("OPENAI_BASE_URL", upstream.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    plan = load(GateName.CI_MERGE, RunRequest(agent="openai:m", k=30, jobs=8, max_cost=0.415))
    verdict, trials = judged(plan, elsewhere(in_thread, workers=4))
    assert upstream.count == 41, "each worker alone can pay for ten calls, and what is left over pays for one more"
    assert verdict.measurement.cost == pytest.approx(0.41)
    assert Counter(one.status for one in trials) == {TrialStatus.PASSED: 41, TrialStatus.NOT_RUN: 79}
    assert {one.reason for one in trials if one.status is TrialStatus.NOT_RUN} == {
        "the run's cost cap of $0.415 is spent"
    }
