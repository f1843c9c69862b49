"""Batches of trials, really run: side by side, and only those that are needed."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.execution.coordinator import RunState
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.execution.remote_batch import CollectedTrials
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.worker import Worker, fault_of_task
from passgate.tasks.gates.guards import LEFT_OUT
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from tests.builders import STOPS_EARLY, a_plan, a_task, measured, trials_of
from tests.unit.benches import bench, says
from tests.waiting import until

__all__ = ["bench"]

STOPPED = a_plan(a_task(), policy=STOPS_EARLY)


async def run(
    tasks: Sequence[EvalTask],
    bench: TrialResources,
    *,
    before: Sequence[Trial] = (),
    plan: Plan | None = None,
    limit: int = 4,
    order: Any = (),
) -> tuple[int, list[Trial]]:
    """Return how many trials of these tasks are run, and all that are recorded."""
    journal = CollectedTrials()
    worker = Worker(
        tasks={task.task_id: task for task in tasks},
        resources=dict.fromkeys(Suite, bench),
        run_state=RunState(before, plan=plan, journal=journal),
    )
    batch = Batch(name="batch", trials=tuple((task.task_id, trial) for task in tasks for trial in range(task.k)))
    await worker.run(batch, Scheduler(limit, order))
    trials = sorted((one.trial for one in journal.trials), key=lambda trial: (trial.task_id, trial.trial))
    return sum(not trial.left_out for trial in trials), trials


async def test_every_trial_of_a_batch_is_recorded(bench) -> None:
    ran, trials = await run([a_task(), a_task(task_id="other", k=2)], bench(says("yes")))
    assert ran == 5
    assert [(trial.task_id, trial.trial) for trial in trials] == [
        *(("other", trial) for trial in range(2)),
        *(("say-yes", trial) for trial in range(3)),
    ]


@pytest.mark.parametrize(("before", "left"), [("p-f", [1]), ("enl", [0, 1, 2])])
async def test_what_was_measured_is_not_run_again(bench, before: str, left: list[int]) -> None:
    ended = [*trials_of(a_task(), before), *trials_of(a_task(task_id="other"), "-p")]
    ran, trials = await run([a_task()], bench(says("yes")), before=ended)
    assert (ran, [trial.trial for trial in trials]) == (len(left), left)


async def test_what_is_not_needed_any_more_is_left_out(bench) -> None:
    """Whether a trial is needed is asked when its turn has come, for its own task."""
    wrong, right = a_task(), a_task(task_id="right", inputs={"prompt": "be right"})
    asked = []

    def agent(attempt: Attempt) -> str:
        asked.append(attempt.prompt)
        return "yes" if attempt.prompt == "be right" else "no"

    in_turn = [(task.task_id, trial) for trial in range(3) for task in (wrong, right)]
    ran, trials = await run(
        [wrong, right], bench(agent), plan=a_plan(wrong, right, policy=STOPS_EARLY), limit=1, order=in_turn
    )
    assert (ran, len(asked)) == (4, 4)
    assert [trial.status for trial in trials[:3]] == [TrialStatus.PASSED] * 3
    first, *others = trials[3:]
    assert (first.status, first.left_out) == (TrialStatus.FAILED, False)
    assert [(trial.status, trial.left_out, trial.reason, trial.attempts) for trial in others] == [
        (TrialStatus.NOT_RUN, True, LEFT_OUT, 0)
    ] * 2


@pytest.mark.parametrize("cost_cap", [CostCap(), CostCap(1.0, spent=1.0)], ids=["money is left", "none is left"])
async def test_what_was_measured_before_counts_too_and_what_is_left_out_costs_nothing(bench, cost_cap: CostCap) -> None:
    made = replace(bench(says("yes")), cost_cap=cost_cap)
    ran, trials = await run([a_task()], made, before=trials_of(a_task(), "-f"), plan=STOPPED)
    assert ran == 0
    left_out = [(number, True, LEFT_OUT) for number in (0, 2)]
    assert [(trial.trial, trial.left_out, trial.reason) for trial in trials] == left_out


async def test_trials_that_run_already_are_not_stopped(bench) -> None:
    together = asyncio.Barrier(3)

    async def agent(attempt: Attempt) -> str:
        await together.wait()
        return "no"

    assert (await run([a_task()], bench(agent), plan=STOPPED, limit=3))[0] == 3


@pytest.mark.parametrize("limit", [1, 3])
async def test_only_so_many_trials_run_at_once(bench, limit: int) -> None:
    running = most = 0

    async def counts(attempt: Attempt) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await until(lambda: most >= limit)
        await asyncio.sleep(0.02)
        running -= 1
        return "yes"

    await run([a_task(k=8)], bench(counts), limit=limit)
    assert most == limit


def test_a_failed_task_names_its_counts_and_an_error_is_no_failure() -> None:
    task = a_task(k=3)
    counted = {letters: measured((task, trials_of(task, letters))).tasks[0] for letters in ("ppp", "pfe", "pee")}
    assert fault_of_task(counted["ppp"]) is None
    assert fault_of_task(counted["pfe"]) == StepFault("1/2 trials passed, 1 error; it failed", is_measured=True)
    assert fault_of_task(counted["pee"]) == StepFault("1/1 trials passed, 2 errors; it error", is_measured=False)
