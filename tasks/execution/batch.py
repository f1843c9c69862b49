"""The one seam where trials run: a run store and a batch in, the outcome of the batch out."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack

from passgate.tasks.agents.starts import that_count
from passgate.tasks.execution.resources import GradeTrial
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.worker import open_worker, trials_at_once
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.history.journal import Journal, JournalBusyError
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch, BatchOutcome, Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.planning.snapshot import with_files_in

MOST_BATCHES = 32  # Prefect task runs cost time on its server, so tasks share them once there are many
_BUSY_SECONDS = 0.2


def run_batch(store: str, batch: Batch, grade: GradeTrial) -> BatchOutcome:
    """Run what is missing of a batch of the run that is kept at a location; in any process, on plain values.

    It opens what its trials need, and writes each to a part of the journal that is the batch's own. Before that it
    reads which trials the journal holds, so that a batch that is handed out again repeats none that has finished;
    while another process runs the same batch on this machine, it waits for its end. `grade` is a function of a module.

    Raises `UsageError`, `StorageError`, and `MeasurementError` where the trials cannot begin.
    """
    return asyncio.run(_run_batch(RunStore(store), batch, grade))


async def _run_batch(store: RunStore, batch: Batch, grade: GradeTrial) -> BatchOutcome:
    plan = store.read_plan(batch.plan_digest)
    with temporary_folder(f"files-{plan.run_id}") as folder:
        return await _run_here(with_files_in(plan, store, folder), store, batch, grade)


async def _run_here(plan: Plan, store: RunStore, batch: Batch, grade: GradeTrial) -> BatchOutcome:
    part = hashlib.sha256(f"{batch.step} {batch.name}".encode()).hexdigest()[:16]
    with ExitStack() as stack:
        journal = await _entered(store.open_journal(masker_of(plan), part), stack)
        journal.drop_torn_line()
        finished = that_count(store.read_journal())
        async with open_worker(plan, journal, finished, CostCap(batch.max_cost), grade) as worker:
            return await worker.run(batch, Scheduler(batch.trials_at_once or trials_at_once(plan)))


async def _entered(opened: AbstractContextManager[Journal], stack: ExitStack) -> Journal:
    """Enter a part of the journal, once whoever has it has ended: an engine may hand out a batch that still runs."""
    while True:
        try:
            return stack.enter_context(opened)
        except JournalBusyError:
            await asyncio.sleep(_BUSY_SECONDS)


def batches_of(tasks: Sequence[EvalTask]) -> tuple[Batch, ...]:
    """The planned trials of tasks in batches of one suite each, about thirty of them at most; the order stays as far as
    it can.
    """
    size = max(1, -(-len(tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in tasks:
        by_suite.setdefault(task.suite, []).append(task)
    return tuple(
        Batch(name=_name_of(some), trials=tuple((task.task_id, number) for task in some for number in range(task.k)))
        for of_suite in by_suite.values()
        for some in (of_suite[start : start + size] for start in range(0, len(of_suite), size))
    )


def confirming_batches(wanted: Iterable[tuple[EvalTask, Sequence[int]]]) -> tuple[Batch, ...]:
    """Confirming trials, by their numbers, in a batch for each task."""
    return tuple(
        Batch(name=f"confirm {task.name}", step="confirm", trials=tuple((task.task_id, number) for number in numbers))
        for task, numbers in wanted
    )


def _name_of(tasks: Sequence[EvalTask]) -> str:
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return f"{tasks[0].name}{others}"
