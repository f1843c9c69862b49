"""The rounds of a run: the planned trials, then those that confirm what has failed."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from passgate.tasks.execution.batch import batches, run_batch, run_numbered
from passgate.tasks.execution.confirming import confirming_trials
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.history.journal import Journal, read_journal
from passgate.tasks.history.of_run import masker_of
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.stats.measurement import measurement_of


async def run_planned(
    engine: Engine,
    plan: Plan,
    benches: Mapping[Suite, TrialResources],
    journal: Journal,
    scheduler: Scheduler,
    run_state: RunState,
) -> None:
    async with asyncio.TaskGroup() as group:
        for batch in batches(plan.tasks):
            work = partial(run_batch, batch, benches[Suite(batch.suite)], journal, scheduler, run_state)
            fault = partial(_fault_of, batch.tasks, run_state)
            group.create_task(engine.step("run", work, batch.name, fault))


def _fault_of(tasks: Sequence[EvalTask], run_state: RunState, _trials_run: int) -> str:
    """Which of these tasks have not passed by the trials so far, each with its first failure or error."""
    measured = measurement_of(tasks, run_state.finished).tasks
    return "; ".join(
        f"{task.suite}/{task.task_id}: {task.failure or task.error}"
        for task in measured
        if task.state is not TaskState.PASSED
    )


async def run_wanted(
    engine: Engine,
    plan: Plan,
    pool: Pool,
    benches: Mapping[Suite, TrialResources],
    journal: Journal,
    scheduler: Scheduler,
    run_state: RunState,
) -> bool:
    """One round of confirming trials; whether there was anything to confirm."""
    wanted = confirming_trials(plan, run_state.finished, pool(run_state.finished))
    async with asyncio.TaskGroup() as group:
        for eval_task, numbers in wanted:
            work = partial(run_numbered, eval_task, numbers, benches[eval_task.suite], journal, scheduler, run_state)
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
