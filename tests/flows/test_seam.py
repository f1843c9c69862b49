"""The seam where trials run: the same batches in this process and in child processes."""

import asyncio
import json
import os
import re
import signal
import subprocess
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from passgate import __version__
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.execution.batches import batches_of
from passgate.tasks.execution.coordinator import OpenExecutor
from passgate.tasks.execution.distributed.batch import run_batch
from passgate.tasks.execution.distributed.executor import distributed_executor
from passgate.tasks.execution.distributed.orders import write_orders
from passgate.tasks.execution.engine import NoEngine
from passgate.tasks.execution.in_process import in_process
from passgate.tasks.execution.worker import trials_at_once
from passgate.tasks.grade import grade
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.judge import judge
from passgate.tasks.load import load
from passgate.tasks.measure import measure
from passgate.tasks.model.run import Batch, BatchOrders, BatchOutcome, Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.planning.baseline import pool_of, read_rows
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
CHILD = """
import cloudpickle, sys
try:
    outcome = cloudpickle.load(sys.stdin.buffer)()
except Exception as error:
    outcome = error
cloudpickle.dump(outcome, sys.stdout.buffer)
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
    pool = pool_of(plan, read_rows(plan))
    trials = asyncio.run(run(open_executor, plan, pool))
    return judge(plan, plan.policy, trials, measure(plan, trials), pool(trials), ""), trials


def what_counts(verdict: Verdict, trials: Sequence[Trial]) -> Any:
    """What of a run does not depend on when and where it was run."""
    rows = sorted((one.task_id, one.trial, one.status, one.reason, one.score, one.grades) for one in trials)
    return verdict.decision, [reason.message for reason in verdict.reasons], rows, verdict.inputs.tasks


HERE: OpenExecutor = partial(in_process, NoEngine(), grade)


def elsewhere(run_one: Callable[[str, Batch], Any], workers: int = 2) -> OpenExecutor:
    """An executor of distributed batches."""

    @asynccontextmanager
    async def opened(plan: Plan, store: RunStore, *_: object):  # type: ignore[no-untyped-def]
        async with distributed_executor(
            partial(run_one, store.location),
            store,
            workers=workers,
            trials_at_once=trials_at_once(plan),
            cost_left=plan.request.max_cost,
        ) as execute:
            yield execute

    return opened


def started(store: str, batch: Batch, code: str = CHILD) -> "subprocess.Popen[bytes]":
    """A batch in a child process."""
    child = popen([*CODE, code], cwd=Path.cwd(), env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(cloudpickle.dumps(partial(run_batch, store, batch, grade)))
    child.stdin.close()
    return child


def outcome_of(child: "subprocess.Popen[bytes]") -> Any:
    """What a child process hands on, as a task runner does: an outcome, or what was raised."""
    with child:
        assert child.stdout is not None
        return cloudpickle.load(child.stdout)


async def in_child_process(store: str, batch: Batch) -> BatchOutcome:
    outcome: BatchOutcome = await asyncio.to_thread(outcome_of, started(store, batch))
    return outcome


@pytest.mark.slow
def test_child_processes_come_to_the_same_verdict_and_the_same_rows(repository: Project) -> None:
    here = what_counts(*judged(planned(), HERE))
    called = calls(repository)
    (repository.path / "calls.log").unlink()
    assert what_counts(*judged(planned(), elsewhere(in_child_process))) == here
    assert calls(repository) == called


def test_a_worker_whose_disk_is_full_raises_a_storage_error_and_no_group(repository: Project) -> None:
    plan = planned()
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
    error = outcome_of(started(RunStore.of(plan.run_id).location, batches_of(plan.tasks)[0], full + CHILD))
    assert (type(error), "cannot write the journal " in str(error)) == (StorageError, True)


def test_a_worker_with_another_version_runs_nothing_and_says_which_to_install(
    repository: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passgate.tasks.execution.distributed.batch.__version__", "0.0.9")

    async def in_thread(store: str, batch: Batch) -> BatchOutcome:
        return await asyncio.to_thread(run_batch, store, batch, grade)

    has = f"has passgate 0.0.9, and the run is coordinated by {__version__}: install passgate {__version__} there"
    with pytest.raises(UsageError, match=re.escape(has)):
        judged(planned(), elsewhere(in_thread))
    assert calls(repository) == []


@pytest.mark.slow
def test_a_batch_that_is_handed_out_twice_repeats_no_trial(repository: Project) -> None:
    async def twice(store: str, batch: Batch) -> BatchOutcome:
        first, second = await asyncio.gather(in_child_process(store, batch), in_child_process(store, batch))
        assert first.trials == second.trials, "one of them has waited, and found nothing left to do"
        assert first.spent == second.spent
        return await in_child_process(store, batch)

    (repository.path / "slow").touch()
    _, trials = judged(planned(), elsewhere(twice))
    assert len(trials) == 9
    assert calls(repository) == sorted(f"{one.task_id} {one.trial}" for one in trials)


@pytest.mark.slow
def test_a_batch_whose_process_was_killed_goes_on_elsewhere(repository: Project) -> None:
    (repository.path / "slow").touch()
    plan = planned()
    store = RunStore.of(plan.run_id)
    (batch, *_) = batches_of(plan.tasks)
    batch = batch.model_copy(update={"trials_at_once": 1})
    with started(store.location, batch) as child:
        wait_until(lambda: bool(store.read_journal()))
        child.send_signal(signal.SIGKILL)
    before = calls(repository)[: len(store.read_journal())]
    outcome = asyncio.run(in_child_process(store.location, batch))
    assert {(one.task_id, one.trial) for one in outcome.trials} == set(batch.trials)
    assert {(one.trial.task_id, one.trial.trial) for one in store.read_journal()} == set(batch.trials)
    assert all(calls(repository).count(call) == 1 for call in before)


@pytest.mark.slow
def test_a_batch_ends_when_another_coordinator_has_the_run(repository: Project) -> None:
    (repository.path / "slow").touch()
    plan = planned()
    store = RunStore.of(plan.run_id)
    trials = tuple((task.task_id, number) for task in plan.tasks for number in range(200))
    child = started(store.location, Batch(name="all", trials=trials, trials_at_once=1, coordinator="first"))
    wait_until(lambda: bool(store.read_journal()))
    write_orders(store, BatchOrders(coordinator="second"))
    assert isinstance(outcome_of(child), Exception)
    assert len(store.read_journal()) < len(trials)


@pytest.mark.slow
def test_the_cost_cap_is_exact_over_four_workers(
    repository: Project, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.says(Says("yes"))  # for a cent
    repository.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    repository.write("suites/golden/d.yaml", json.dumps(task_document(task_id="d")))
    monkeypatch.setenv("OPENAI_BASE_URL", upstream.openai_base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    plan = load(GateName.CI_MERGE, RunRequest(agent="openai:m", k=30, jobs=8, max_cost=0.415))
    verdict, trials = judged(plan, elsewhere(in_child_process, workers=4))
    assert upstream.count == 41, "each worker alone can pay for ten calls, and what is left over pays for one more"
    assert verdict.measurement.cost == pytest.approx(0.41)
    assert Counter(one.status for one in trials) == {TrialStatus.PASSED: 41, TrialStatus.NOT_RUN: 79}
    assert {one.reason for one in trials if one.status is TrialStatus.NOT_RUN} == {
        "the run's cost cap of $0.415 is spent"
    }
