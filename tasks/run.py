"""Run: a plan in, its finished trials out, each of them in the journal before it counts."""

import asyncio

from passgate.tasks.agents.starts import that_count
from passgate.tasks.execution.coordinator import OpenExecutor, coordinate
from passgate.tasks.files.temporary import sweep
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.reports.messages import warn


async def run(open_executor: OpenExecutor, plan: Plan, pool: Pool) -> list[FinishedTrial]:
    """Run every trial of a plan that its journal does not hold yet and that can still matter, confirming ones included;
    gives all of them.

    The journal is held meanwhile, so that nobody else coordinates the run. Raises `UsageError` and `StorageError`.
    """
    for remains in await asyncio.to_thread(sweep):
        warn(str(remains))
    store = RunStore.of(plan.run_id)
    with store.open_journal(masker_of(plan)) as journal:
        journal.drop_torn_line()
        finished = that_count(store.read_journal())
        async with open_executor(plan, store, journal, finished) as execute:
            warnings = await coordinate(plan, pool, finished, execute)
    for trouble in warnings:
        warn(f"{trouble}. The verdict does not depend on it")
    return store.read_journal()
