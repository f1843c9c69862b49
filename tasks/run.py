"""Run: a plan in, its finished trials out, each of them in the journal before it counts."""

import asyncio

from passgate.tasks.agents.starts import counted_trials
from passgate.tasks.errors import StorageError
from passgate.tasks.execution.coordinator import Coordinated, OpenExecutor, coordinate
from passgate.tasks.files.temporary import sweep
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.reports.messages import warn


async def run(open_executor: OpenExecutor, plan: Plan, pool: Pool) -> list[Trial]:
    """Run every trial of a plan that its journal does not hold yet and that can still matter, confirming ones included;
    gives all of them.

    The journal is held meanwhile, so that nobody else coordinates the run. Raises `UsageError` and `StorageError`.
    """
    for remains in await asyncio.to_thread(sweep):
        warn(str(remains))
    store = RunStore.of(plan.run_id)
    coordinated = await _coordinated(open_executor, plan, pool, store)
    for trouble in coordinated.warnings:
        warn(f"{trouble}. The verdict does not depend on it")
    trials = store.read_trials()
    lost = {(one.task_id, one.trial) for one in coordinated.trials} - {(one.task_id, one.trial) for one in trials}
    if lost:
        raise StorageError(
            f"{store.location} has lost {len(lost)} trials that were in the journal: there is no verdict"
        )
    return trials


async def _coordinated(open_executor: OpenExecutor, plan: Plan, pool: Pool, store: RunStore) -> Coordinated:
    """Coordinate what is missing."""
    with store.open_journal() as journal:
        journal.drop_torn_line()
        finished = counted_trials(store.read_journal())
        async with open_executor(plan, store, journal, finished) as execute:
            return await coordinate(plan, pool, finished, execute, store.plan_digest())
