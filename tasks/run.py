"""Run: a plan in, its finished trials out, each of them in the journal before it counts."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from passgate.tasks.agents.starts import that_count
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.resources import TrialResources, hidden_from_agents, open_resources
from passgate.tasks.execution.rounds import run_planned, run_wanted
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.files.temporary import sweep
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.history.journal import Journal, read_journal
from passgate.tasks.history.of_run import masker_of
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.planning.order import run_order
from passgate.tasks.reports.messages import warn


async def run(engine: Engine, plan: Plan, pool: Pool) -> list[FinishedTrial]:
    """Run every trial of a plan that its journal does not hold yet and that can still matter, confirming ones included;
    gives all of them.
    """
    for remains in await asyncio.to_thread(sweep):
        warn(str(remains))
    journal_file = RunFolder(plan.run_id).journal
    with Journal(journal_file, masker_of(plan)) as journal:
        journal.drop_torn_line()
        counted = that_count(read_journal(journal_file)[0])
        before = [finished.trial for finished in counted]
        run_state = RunState(before, partial(needless, plan))
        order = [key for key in run_order(plan.tasks, pool(before)) if not run_state.has(key)]
        scheduler = Scheduler(plan.request.jobs or plan.policy.concurrency.trials, order)
        cost_cap = CostCap(plan.request.max_cost, spent=sum(trial.cost for trial in before if not trial.reused_from))
        async with _open_benches(plan, cost_cap) as benches:
            for bench in benches.values():
                bench.starts.carry_on(counted)
            await run_planned(engine, plan, benches, journal, scheduler, run_state)
            for bench in benches.values():
                bench.starts.refuse_wrong_command()
            while await run_wanted(engine, plan, pool, benches, journal, scheduler, run_state):
                pass
        for trouble in dict.fromkeys(trouble for bench in benches.values() for trouble in bench.workbench.warnings):
            warn(f"{trouble}. The verdict does not depend on it")
    return read_journal(journal_file)[0]


@asynccontextmanager
async def _open_benches(plan: Plan, cost_cap: CostCap) -> AsyncIterator[Mapping[Suite, TrialResources]]:
    """What the tasks of each suite are run with: one bench for each folder that they are from."""
    suites = dict.fromkeys(task.suite for task in plan.tasks)
    async with AsyncExitStack() as stack:
        benches = {
            folder: await stack.enter_async_context(
                open_resources(
                    plan.agent,
                    folder,
                    plan.policy,
                    prices=plan.prices,
                    cost_cap=cost_cap,
                    needs_price=plan.needs_price,
                    hidden=hidden_from_agents(plan),
                    label=plan.run_id,
                )
            )
            for folder in dict.fromkeys(map(plan.folder_of, suites))
        }
        yield {suite: benches[plan.folder_of(suite)] for suite in suites}
