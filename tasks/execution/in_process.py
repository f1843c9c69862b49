"""The default executor: all batches in this process, with one scheduler, one cost cap and one event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from passgate.tasks.execution.coordinator import Round
from passgate.tasks.execution.engine import Engine, StepFault
from passgate.tasks.execution.resources import GradeTrial
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.shared_limit import OpenLimit, not_shared
from passgate.tasks.execution.worker import Worker, open_worker, trials_at_once
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch, Plan


class InProcess:
    """Run batches in this process, each as a step of the engine."""

    def __init__(self, engine: Engine, worker: Worker, at_once: int) -> None:
        self._engine, self._worker, self._at_once = engine, worker, at_once

    async def run(self, current: Round) -> None:
        """As of `Executor`. The order and the number of trials at once hold over all batches of the round."""
        scheduler = Scheduler(self._at_once, current.order)
        async with asyncio.TaskGroup() as group:
            for batch in current.batches:
                group.create_task(self._run_batch(batch, scheduler))

    async def _run_batch(self, batch: Batch, scheduler: Scheduler) -> None:
        def fault(_: None) -> StepFault | None:
            # Confirming trials show a task that has failed already.
            return self._worker.fault_of(batch) if batch.step == "run" else None

        await self._engine.step(batch.step, partial(self._worker.run, batch, scheduler), batch.name, fault)


@asynccontextmanager
async def in_process(
    engine: Engine,
    grade: GradeTrial,
    plan: Plan,
    _store: RunStore,
    run_state: RunState,
    *,
    open_limit: OpenLimit = not_shared,
) -> AsyncIterator[InProcess]:
    """Open the executor of this process while the context lasts. Raises `UsageError`."""
    cost_cap = CostCap(plan.request.max_cost, spent=run_state.spent)
    async with open_worker(plan, run_state, cost_cap, grade, open_limit) as worker:
        yield InProcess(engine, worker, trials_at_once(plan))
