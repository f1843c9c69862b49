"""Run a plan: return its finished trials, each of them in the journal before it counts."""

import asyncio

from passgate.tasks.agents.starts import Starts, counted_trials
from passgate.tasks.errors import StorageError
from passgate.tasks.execution.coordinator import OpenExecutor, RunState, coordinate
from passgate.tasks.files.temporary import sweep
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.reports.messages import warn


async def run(open_executor: OpenExecutor, plan: Plan, pool: Pool) -> list[Trial]:
    """Run every trial of a plan that its journal lacks and that can still matter. Return all trials.

    The journal is locked meanwhile. Raises `UsageError` and `StorageError`.
    """
    for remains in await asyncio.to_thread(sweep):
        warn(str(remains))
    store, starts = RunStore.of(plan.run_id), Starts()
    with store.open_journal() as journal:
        journal.drop_torn_line()
        finished = counted_trials(store.read_journal())
        starts.resume(finished)
        before = (one.trial for one in finished)
        run_state = RunState(before, plan=plan, journal=journal, starts=starts)
        async with open_executor(plan, store, run_state) as executor:
            await coordinate(plan, pool, run_state, executor)
    for problem in run_state.warnings:
        warn(f"{problem}. The verdict does not depend on it")
    trials = store.read_trials()
    lost = {(one.task_id, one.trial) for one in run_state.finished} - {(one.task_id, one.trial) for one in trials}
    if lost:
        raise StorageError(
            f"{store.location} has lost {len(lost)} trials that were in the journal: there is no verdict"
        )
    return trials
