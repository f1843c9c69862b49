"""Batches of trials, really run: side by side, and only those that are needed."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.starts import Starts
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler, TrialKey
from passgate.tasks.execution.worker import Worker, fault_of_task
from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from tests.builders import a_task, measured, trials_of
from tests.unit.benches import MakeBench, benches, says


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    """Benches for functions as agents."""
    with benches(tmp_path / "suites") as make:
        yield make


async def run(
    tasks: Sequence[EvalTask],
    bench: TrialResources,
    file: Path,
    *,
    limit: int = 4,
    run_state: RunState | None = None,
    order: Any = (),
) -> int:
    with FileJournal(file, bench.masker) as journal:
        worker = Worker(
            tasks={task.task_id: task for task in tasks},
            resources=dict.fromkeys(Suite, bench),
            journal=journal,
            run_state=run_state or RunState(),
            starts=Starts(),
        )
        batch = Batch(name="batch", trials=tuple((task.task_id, trial) for task in tasks for trial in range(task.k)))
        return len((await worker.run(batch, Scheduler(limit, order))).trials)


async def test_every_trial_of_a_batch_is_in_the_journal(bench, tmp_path: Path) -> None:
    tasks = a_task(), a_task(task_id="other", k=2)
    assert await run([*tasks], bench(says("yes")), tmp_path / "journal") == 5
    trials, _ = read_journal(tmp_path / "journal")
    assert sorted((one.trial.task_id, one.trial.trial) for one in trials) == [
        ("other", 0),
        ("other", 1),
        ("say-yes", 0),
        ("say-yes", 1),
        ("say-yes", 2),
    ]


async def test_what_is_done_is_not_run_again(bench, tmp_path: Path) -> None:
    run_state = RunState([*trials_of(a_task(), "p-f"), *trials_of(a_task(task_id="other"), "-p")])
    assert await run([a_task()], bench(says("yes")), tmp_path / "journal", run_state=run_state) == 1
    trials, _ = read_journal(tmp_path / "journal")
    assert [one.trial.trial for one in trials] == [1]


async def test_what_could_not_be_measured_before_is_run_again(bench, tmp_path: Path) -> None:
    run_state = RunState(trials_of(a_task(), "enl"))
    assert await run([a_task()], bench(says("yes")), tmp_path / "journal", run_state=run_state) == 3


def after_a_failure(task: EvalTask, trials: Sequence[Trial]) -> str | None:
    """A gate for which one failed trial says everything."""
    return "one has failed" if any(trial.status is TrialStatus.FAILED for trial in trials) else None


def in_turn(*tasks: EvalTask) -> list[TrialKey]:
    return [(task.task_id, trial) for trial in range(3) for task in tasks]


async def test_what_is_not_needed_any_more_is_left_out(bench, tmp_path: Path) -> None:
    """Whether a trial is needed is asked when its turn has come, for its own task."""
    wrong, right = a_task(), a_task(task_id="right", inputs={"prompt": "be right"})
    asked = []

    def agent(attempt: Attempt) -> str:
        asked.append(attempt.prompt)
        return "yes" if attempt.prompt == "be right" else "no"

    run_state = RunState(needless=after_a_failure)
    ran = await run(
        [wrong, right],
        bench(agent),
        tmp_path / "journal",
        limit=1,
        run_state=run_state,
        order=in_turn(wrong, right),
    )
    assert (ran, len(asked)) == (4, 4)
    trials = [one.trial for one in read_journal(tmp_path / "journal")[0]]
    by_task = {name: [trial for trial in trials if trial.task_id == name] for name in ("say-yes", "right")}
    assert [trial.status for trial in by_task["right"]] == [TrialStatus.PASSED] * 3
    first, *others = sorted(by_task["say-yes"], key=lambda trial: trial.trial)
    assert (first.status, first.left_out) == (TrialStatus.FAILED, False)
    assert [(trial.status, trial.left_out, trial.reason, trial.attempts) for trial in others] == [
        (TrialStatus.NOT_RUN, True, "one has failed", 0)
    ] * 2


async def test_what_was_measured_before_counts_too(bench, tmp_path: Path) -> None:
    run_state = RunState(trials_of(a_task(), "-f"), after_a_failure)
    assert await run([a_task()], bench(says("yes")), tmp_path / "journal", run_state=run_state) == 0
    trials = [one.trial for one in read_journal(tmp_path / "journal")[0]]
    assert [(trial.trial, trial.left_out) for trial in trials] == [(0, True), (2, True)]


async def test_what_is_left_out_costs_nothing_also_where_the_money_is_spent(bench, tmp_path: Path) -> None:
    made = replace(bench(says("no")), cost_cap=CostCap(1.0, spent=1.0))
    run_state = RunState(trials_of(a_task(), "f"), after_a_failure)
    await run([a_task()], made, tmp_path / "journal", run_state=run_state)
    assert {one.trial.reason for one in read_journal(tmp_path / "journal")[0]} == {"one has failed"}


async def test_trials_that_run_already_are_not_stopped(bench, tmp_path: Path) -> None:
    together = asyncio.Barrier(3)

    async def agent(attempt: Attempt) -> str:
        await together.wait()
        return "no"

    run_state = RunState(needless=after_a_failure)
    assert await run([a_task()], bench(agent), tmp_path / "journal", limit=3, run_state=run_state) == 3


@pytest.mark.parametrize("limit", [1, 3])
async def test_only_so_many_trials_run_at_once(bench, tmp_path: Path, limit: int) -> None:
    running = most = 0

    async def counts(attempt: Attempt) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return "yes"

    await run([a_task(k=8)], bench(counts), tmp_path / "journal", limit=limit)
    assert most == limit


def test_a_failed_task_names_its_counts_and_an_error_is_no_failure() -> None:
    task = a_task(k=3)
    counted = {letters: measured((task, trials_of(task, letters))).tasks[0] for letters in ("ppp", "pfe", "pee")}
    assert fault_of_task(counted["ppp"]) is None
    assert fault_of_task(counted["pfe"]) == StepFault("1/2 trials passed, 1 error; it failed", is_measured=True)
    assert fault_of_task(counted["pee"]) == StepFault("1/1 trials passed, 2 errors; it error", is_measured=False)
