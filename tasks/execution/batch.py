"""Batches of trials: eval tasks in, finished trials in the journal out."""

import asyncio
from collections.abc import Sequence

from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.trial import left_out, run_trial
from passgate.tasks.history.journal import Journal
from passgate.tasks.model.run import Batch
from passgate.tasks.model.task import EvalTask

MOST_BATCHES = 32
"""Prefect task runs cost time on its server, so tasks share them once there are many."""


def batches(tasks: Sequence[EvalTask]) -> tuple[Batch, ...]:
    """Tasks in batches of one suite each, at most about thirty of them; the order stays as far as it can."""
    size = max(1, -(-len(tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in tasks:
        by_suite.setdefault(task.suite, []).append(task)
    return tuple(
        Batch(
            name=_batch_name(suite, tasks[start : start + size]), suite=suite, tasks=tuple(tasks[start : start + size])
        )
        for suite, tasks in by_suite.items()
        for start in range(0, len(tasks), size)
    )


def _batch_name(suite: str, tasks: Sequence[EvalTask]) -> str:
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return f"{suite}/{tasks[0].task_id}{others}"


async def run_batch(
    batch: Batch, bench: TrialResources, journal: Journal, scheduler: Scheduler, run_state: RunState
) -> int:
    """Run every trial of a batch that was not measured yet, each when a slot is free for it; how many were run.

    Whether a trial is still needed is asked when its turn has come; one that is not goes to the journal as `not_run`.
    Raises `UsageError` once the trials show that the agent's command cannot be started.
    """
    wanted = [(task, trial) for task in batch.tasks for trial in range(task.k)]
    return await _run_wanted(wanted, bench, journal, scheduler, run_state)


async def run_numbered(
    task: EvalTask,
    trials: Sequence[int],
    bench: TrialResources,
    journal: Journal,
    scheduler: Scheduler,
    run_state: RunState,
) -> int:
    """Run some trials of one task, by their numbers, as `run_batch` does; how many were run."""
    return await _run_wanted([(task, trial) for trial in trials], bench, journal, scheduler, run_state)


async def _run_wanted(
    wanted: Sequence[tuple[EvalTask, int]],
    bench: TrialResources,
    journal: Journal,
    scheduler: Scheduler,
    run_state: RunState,
) -> int:
    async def run_one(task: EvalTask, trial: int) -> bool:
        paid_before = run_state.paid_for((task.task_id, trial))
        async with scheduler.slot((task.task_id, trial)):
            needless = run_state.needless(task)
            if needless is None:
                finished = await run_trial(task, trial, bench, paid_before=paid_before)
                await journal.append(finished)
                bench.starts.add(finished)
                run_state.add(finished.trial)
                return True
        await journal.append(left_out(task, trial, needless, bench, paid_before=paid_before))
        return False

    missing = [(task, trial) for task, trial in wanted if not run_state.has((task.task_id, trial))]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(run_one(task, trial)) for task, trial in missing]
    return sum(one.result() for one in running)
