"""The trials of a run: the planned ones, then those that confirm what has failed."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from passgate.flows.cli.terminal import warn
from passgate.flows.engine import Engine
from passgate.tasks.agents.starts import that_count
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.budgets.slots import Slots
from passgate.tasks.budgets.standing import Standing
from passgate.tasks.confirm import confirming_trials
from passgate.tasks.files.temporary import sweep
from passgate.tasks.gates.curtail import needless
from passgate.tasks.history.journal import Journal, read_journal
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.judge import Pool
from passgate.tasks.measure import measure
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.order import run_order
from passgate.tasks.record import masker_of
from passgate.tasks.run import Bench, batches, hidden_from_agents, open_bench, run_batch, run_numbered


async def run_trials(engine: Engine, plan: Plan, pool: Pool) -> list[FinishedTrial]:
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
        standing = Standing(before, partial(needless, plan))
        order = [key for key in run_order(plan.tasks, pool(before)) if not standing.has(key)]
        slots = Slots(plan.request.jobs or plan.policy.concurrency.trials, order)
        purse = Purse(plan.request.max_cost, spent=sum(trial.cost for trial in before if not trial.reused_from))
        async with _open_benches(plan, purse) as benches:
            for bench in benches.values():
                bench.starts.carry_on(counted)
            await _run_planned(engine, plan, benches, journal, slots, standing)
            for bench in benches.values():
                bench.starts.refuse_wrong_command()
            while await _run_wanted(engine, plan, pool, benches, journal, slots, standing):
                pass
        for trouble in dict.fromkeys(trouble for bench in benches.values() for trouble in bench.workbench.troubles):
            warn(f"{trouble}. The verdict does not depend on it")
    return read_journal(journal_file)[0]


@asynccontextmanager
async def _open_benches(plan: Plan, purse: Purse) -> AsyncIterator[Mapping[Suite, Bench]]:
    """What the tasks of each suite are run with: one bench for each folder that they are from."""
    suites = dict.fromkeys(task.suite for task in plan.tasks)
    async with AsyncExitStack() as stack:
        benches = {
            folder: await stack.enter_async_context(
                open_bench(
                    plan.agent,
                    folder,
                    plan.policy,
                    prices=plan.prices,
                    purse=purse,
                    needs_price=plan.needs_price,
                    hidden=hidden_from_agents(plan),
                    label=plan.run_id,
                )
            )
            for folder in dict.fromkeys(map(plan.folder_of, suites))
        }
        yield {suite: benches[plan.folder_of(suite)] for suite in suites}


async def _run_planned(
    engine: Engine, plan: Plan, benches: Mapping[Suite, Bench], journal: Journal, slots: Slots, standing: Standing
) -> None:
    async with asyncio.TaskGroup() as group:
        for batch in batches(plan.tasks):
            work = partial(run_batch, batch, benches[Suite(batch.suite)], journal, slots, standing)
            fault = partial(_fault_of, batch.tasks, standing)
            group.create_task(engine.step("run", work, batch.name, fault))


def _fault_of(tasks: Sequence[EvalTask], standing: Standing, _trials_run: int) -> str:
    """Which of these tasks have not passed by the trials so far, each with its first failure or error."""
    measured = measure(tasks, standing.finished).tasks
    return "; ".join(
        f"{task.suite}/{task.task_id}: {task.failure or task.error}"
        for task in measured
        if task.state is not TaskState.PASSED
    )


async def _run_wanted(
    engine: Engine,
    plan: Plan,
    pool: Pool,
    benches: Mapping[Suite, Bench],
    journal: Journal,
    slots: Slots,
    standing: Standing,
) -> bool:
    """One round of confirming trials; whether there was anything to confirm."""
    wanted = confirming_trials(plan, standing.finished, pool(standing.finished))
    async with asyncio.TaskGroup() as group:
        for eval_task, numbers in wanted:
            work = partial(run_numbered, eval_task, numbers, benches[eval_task.suite], journal, slots, standing)
            group.create_task(engine.step("confirm", work, f"confirm {eval_task.name}"))
    return bool(wanted)


async def take_over(folder: RunFolder, plan: Plan, trials: Iterable[FinishedTrial]) -> None:
    """Put trials that another run has measured into the journal of a plan, but for those that it holds already."""
    with Journal(folder.journal, masker_of(plan)) as journal:
        journal.drop_torn_line()
        known = {(one.trial.task_id, one.trial.trial) for one in read_journal(folder.journal)[0]}
        for one in trials:
            if (one.trial.task_id, one.trial.trial) not in known:
                await journal.append(one)
