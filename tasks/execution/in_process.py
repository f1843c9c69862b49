"""The default executor: all batches in this process, with one scheduler, one cost cap and one event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from passgate.tasks.execution.coordinator import Executor, Round
from passgate.tasks.execution.engine import Engine, StepFault
from passgate.tasks.execution.resources import GradeTrial
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.shared_limit import OpenLimit, not_shared
from passgate.tasks.execution.worker import Worker, open_worker, trials_at_once
from passgate.tasks.history.journal import Journal
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch, BatchOutcome, Plan
from passgate.tasks.model.trial import FinishedTrial


@asynccontextmanager
async def in_process(
    engine: Engine,
    grade: GradeTrial,
    plan: Plan,
    _store: RunStore,
    journal: Journal,
    finished: Sequence[FinishedTrial],
    *,
    open_limit: OpenLimit = not_shared,
) -> AsyncIterator[Executor]:
    """An executor of this process, for as long as the context lasts; every batch is a step of the engine.

    The order of the trials, the cost cap and the number of trials at once hold over all batches. Raises `UsageError`.
    """
    cost_cap = CostCap(plan.request.max_cost, spent=_spent(finished))
    async with open_worker(plan, journal, finished, cost_cap, grade, open_limit) as worker:
        yield partial(_execute, engine, plan, worker)


def cost_left(plan: Plan, finished: Iterable[FinishedTrial]) -> float | None:
    """US dollars of the cost cap of a run that its trials have left; `None` without a cap."""
    return None if plan.request.max_cost is None else max(0.0, plan.request.max_cost - _spent(finished))


def _spent(finished: Iterable[FinishedTrial]) -> float:
    return sum(one.trial.cost for one in finished if not one.trial.reused_from)


async def _execute(
    engine: Engine, plan: Plan, worker: Worker, current: Round, ended: Callable[[BatchOutcome], None]
) -> None:
    # One for the round: the order and the number of trials at once hold over all of its batches.
    scheduler = Scheduler(trials_at_once(plan), current.order)
    async with asyncio.TaskGroup() as group:
        for batch in current.batches:
            group.create_task(_step(engine, worker, batch, scheduler, ended))


async def _step(
    engine: Engine, worker: Worker, batch: Batch, scheduler: Scheduler, ended: Callable[[BatchOutcome], None]
) -> None:
    def fault(_outcome: BatchOutcome) -> StepFault | None:
        # Confirming trials show a task that has failed already.
        return worker.fault_of(batch) if batch.step == "run" else None

    ended(await engine.step(batch.step, partial(worker.run, batch, scheduler), batch.name, fault))
