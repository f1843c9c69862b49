"""The seam where trials run: the same batches in this process and in child processes."""

import asyncio
import json
import os
import re
import subprocess
import textwrap
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from passgate import __version__
from passgate.tasks.errors import StorageError, UsageError, WorkerLostError
from passgate.tasks.execution.coordinator import OpenExecutor, batches_of
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
from passgate.tasks.planning.baseline import pool_of, read_rows
from passgate.tasks.run import run
from tests.builders import task_document
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import until, wait_until
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
    return judge(plan, plan.policy, trials, measure(plan, trials, pool(trials)), pool(trials), ""), trials


def what_counts(verdict: Verdict, trials: Sequence[Trial]) -> Any:
    """What of a run does not depend on when and where it was run."""
    rows = sorted((one.task_id, one.trial, one.status, one.reason, one.score, one.grades) for one in trials)
    return verdict.decision, [reason.message for reason in verdict.reasons], rows, verdict.inputs.tasks


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
        trials=batches_of(plan.tasks)[0].trials,
        location=store.location,
        plan_digest=store.plan_digest(),
        coordinator="first",
        passgate_version=__version__,
        trials_at_once=1,
    )
    return batch.model_copy(update=changes)


def started(batch: RemoteBatch, code: str = CHILD) -> "subprocess.Popen[bytes]":
    """A batch in a child process."""
    child = popen([*CODE, code], cwd=Path.cwd(), env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(cloudpickle.dumps(partial(run_batch, batch)))
    child.stdin.close()
    return child


def outcome_of(child: "subprocess.Popen[bytes]") -> Any:
    """What a child process hands on, as a task runner does: a result, or what was raised."""
    with child:
        assert child.stdout is not None
        return cloudpickle.load(child.stdout)


async def in_child_process(batch: RemoteBatch) -> BatchResult:
    result: BatchResult = await asyncio.to_thread(outcome_of, started(batch))
    return result


@pytest.mark.slow
def test_child_processes_come_to_the_same_verdict_and_the_same_rows(repository: Project) -> None:
    here = what_counts(*judged(planned(), HERE))
    called = calls(repository)
    (repository.path / "calls.log").unlink()
    assert what_counts(*judged(planned(), elsewhere(in_child_process))) == here
    assert calls(repository) == called


def test_a_worker_with_another_version_runs_nothing_and_says_which_to_install(
    repository: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("passgate.tasks.execution.remote_batch.__version__", "0.0.9")

    async def in_thread(batch: RemoteBatch) -> BatchResult:
        return await asyncio.to_thread(run_batch, batch)

    has = f"has passgate 0.0.9, and the run is coordinated by {__version__}: install passgate {__version__} there"
    with pytest.raises(UsageError, match=re.escape(has)):
        judged(planned(), elsewhere(in_thread))
    assert calls(repository) == []


@pytest.mark.slow
def test_a_batch_whose_process_is_killed_is_repeated_and_nothing_else(repository: Project) -> None:
    (repository.path / "slow").touch()
    repository.write("gates.yaml", GATES.replace("k: 3", "k: 20"))
    killed = list[RemoteBatch]()

    async def losing(batch: RemoteBatch) -> BatchResult:
        if not killed and len(calls(repository)) > 8:
            killed.append(batch)
            with started(batch) as child:
                before = len(calls(repository))
                await until(lambda: len(calls(repository)) > before + 1)
                child.kill()
            raise WorkerLostError("killed")
        return await in_child_process(batch)

    plan = planned()
    judged(plan, elsewhere(losing))
    repeated = [call for call, count in Counter(calls(repository)).items() if count > 1]
    assert repeated
    assert set(repeated) <= {f"{task_id} {number}" for task_id, number in killed[0].trials}
    assert len(RunStore.of(plan.run_id).read_trials()) == 60


@pytest.mark.slow
@pytest.mark.parametrize("successor", ["second", ""])
def test_a_batch_stops_when_another_process_coordinates_the_run_or_none_does(
    repository: Project, successor: str
) -> None:
    (repository.path / "slow").touch()
    plan = planned()
    batch = first_batch(plan, trials=tuple((task.task_id, number) for task in plan.tasks for number in range(200)))
    child = started(batch)
    wait_until(lambda: bool(calls(repository)))
    RunStore.of(plan.run_id).write_coordinator(successor)
    assert "nobody coordinates it any more" in str(outcome_of(child))
    assert len(calls(repository)) < 600


@pytest.mark.slow
def test_a_batch_stops_when_the_process_that_has_started_it_is_killed(repository: Project) -> None:
    (repository.path / "slow").touch()
    plan = planned()
    batch = first_batch(plan, trials=tuple((task.task_id, number) for task in plan.tasks for number in range(200)))
    work = repository.write("batch.pickle", "")
    work.write_bytes(cloudpickle.dumps(partial(run_batch, batch)))
    command = [*CODE, CHILD]
    code = f"import subprocess; subprocess.Popen({command!r}, stdin=open({str(work)!r})); import time; time.sleep(999)"
    with popen([*CODE, code], cwd=Path.cwd(), env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        wait_until(lambda: bool(calls(repository)))
        parent.kill()
        assert "nobody coordinates it any more" in str(cloudpickle.load(parent.stdout))


def test_trials_that_the_journal_has_lost_give_no_verdict(repository: Project) -> None:
    plan = planned()

    async def losing(batch: RemoteBatch) -> BatchResult:
        os.truncate(RunStore.of(plan.run_id).journal, 0)
        return await asyncio.to_thread(run_batch, batch)

    with pytest.raises(StorageError, match=r"has lost \d trials"):
        judged(plan, elsewhere(losing, workers=1))


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
