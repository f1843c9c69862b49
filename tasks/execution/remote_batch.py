"""Run a batch in any process, given plain values. Its finished trials go back to the coordinator as values."""

import asyncio
import atexit
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from passgate import __version__
from passgate.tasks.errors import EngineError, StorageError, UsageError, first_known
from passgate.tasks.execution.coordinator import RunState
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.worker import OpenLimit, Slot, not_shared, open_worker
from passgate.tasks.files.temporary import TemporaryFolder
from passgate.tasks.history.run_store import COORDINATOR, parse_plan
from passgate.tasks.history.storage import PLAN, storage_at
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.planning.plan import unpack_snapshot

_LOOK_SECONDS: Final = 1.0
LOOK_SECONDS_AT_URL: Final = 2.0  # Each look is a request


def run_batch(batch: RemoteBatch, open_limit: OpenLimit = not_shared) -> BatchResult:
    """Run the trials of a batch and return them.

    `open_limit` opens the limit that runs share. Raises `UsageError`,
    `StorageError`, `MeasurementError` if the trials cannot begin, and `EngineError` if nobody coordinates the batch any
    more.
    """
    if batch.passgate_version != __version__:
        here = f"the worker on {socket.gethostname()} has passgate {__version__}"
        needed = batch.passgate_version
        raise UsageError(f"{here}, and the run is coordinated by {needed}: install passgate {needed} there")
    try:
        with _PLANS.opened(batch) as plan:
            return asyncio.run(_run(plan, batch, open_limit))
    except ExceptionGroup as group:
        known = first_known(group)
        if known is None:
            raise
    # Not in the handler: an error whose context is a group that it is in cannot be pickled, as task runners have to.
    raise known


class CollectedTrials:
    """The journal of a batch, in memory: its trials go to the coordinator, which writes them."""

    def __init__(self) -> None:
        self.trials: list[FinishedTrial] = []

    async def append(self, finished: FinishedTrial) -> None:
        self.trials.append(finished)


async def _run(plan: Plan, batch: RemoteBatch, open_limit: OpenLimit) -> BatchResult:
    coordinator_watch = _CoordinatorWatch(batch)
    await coordinator_watch.refuse_abandoned()
    collected = CollectedTrials()
    run_state = RunState(batch.earlier, plan=plan, journal=collected)
    cost_cap = CostCap(batch.cost_cap, share=batch.share, call_cost=batch.call_cost)
    async with open_worker(plan, run_state, cost_cap, open_limit) as opened:
        worker = replace(opened, shared_slot=partial(coordinator_watch.slot, opened.shared_slot))
        began = time.monotonic()
        running = asyncio.create_task(worker.run(batch, Scheduler(batch.trials_at_once)))
        abandoned = asyncio.create_task(coordinator_watch.wait_until_abandoned())
        try:
            await asyncio.wait([running, abandoned], return_when=asyncio.FIRST_COMPLETED)
            await (running if running.done() else abandoned)
        finally:
            abandoned.cancel()
            running.cancel()
            await asyncio.wait([running, abandoned])
        seconds = time.monotonic() - began
    return BatchResult(
        trials=tuple(collected.trials),
        seconds=seconds,
        call_cost=cost_cap.call_cost,
        warnings=tuple(run_state.warnings),
    )


class _CoordinatorWatch:
    """Stops a batch once another process coordinates the run, none does, or the parent of this process has ended.

    A cluster may keep the batch of a killed coordinator for longer than the next one needs to run the same trials.
    """

    def __init__(self, batch: RemoteBatch) -> None:
        self._storage, self._coordinator, self._parent = storage_at(batch.location), batch.coordinator, os.getppid()
        self._is_at_url = "://" in batch.location

    async def refuse_abandoned(self) -> None:
        """Raise `EngineError` if nobody coordinates the batch any more."""
        is_abandoned = os.getppid() != self._parent
        with suppress(StorageError):
            coordinator = await asyncio.to_thread(self._storage.read, COORDINATOR)
            is_abandoned = is_abandoned or coordinator != self._coordinator.encode()
        if is_abandoned:
            raise EngineError("the batch was stopped: nobody coordinates it any more")

    async def wait_until_abandoned(self) -> None:
        """Look again and again, for trials that run. Raises `EngineError`."""
        while True:
            await asyncio.sleep(LOOK_SECONDS_AT_URL if self._is_at_url else _LOOK_SECONDS)
            await self.refuse_abandoned()

    @asynccontextmanager
    async def slot(self, shared_slot: Slot) -> AsyncIterator[None]:
        """Hold a slot of the limit that runs share. Raises `EngineError` instead of starting an abandoned trial."""
        async with shared_slot():
            if not self._is_at_url:  # There a trial may not wait for an answer.
                await self.refuse_abandoned()
            yield


@dataclass
class _OpenPlan:
    plan: Plan
    folder: TemporaryFolder | None
    users: int = 0


class _OpenPlans:
    """The plans of the batches that this process runs, with their files if they come from a snapshot.

    They stay open from batch to batch, until a batch of another run comes or the process ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _OpenPlan] = {}
        atexit.register(self._close_unused)

    @contextmanager
    def opened(self, batch: RemoteBatch) -> Iterator[Plan]:
        """Use the plan of a batch while the context lasts. Raises `UsageError` and `StorageError`."""
        with self._lock:
            if batch.plan_digest not in self._open:
                self._close_unused()
                self._open[batch.plan_digest] = _open_plan(batch)
            found = self._open[batch.plan_digest]
            found.users += 1
        try:
            yield found.plan
        finally:
            with self._lock:
                found.users -= 1

    def _close_unused(self) -> None:
        for digest, one in list(self._open.items()):
            if not one.users:
                del self._open[digest]
                if one.folder is not None:
                    one.folder.remove()


def _open_plan(batch: RemoteBatch) -> _OpenPlan:
    storage = storage_at(batch.location)
    plan = parse_plan(storage.read(PLAN), batch.location, batch.plan_digest)
    if plan.snapshot is None:
        return _OpenPlan(plan, None)
    folder = TemporaryFolder(f"files-{plan.run_id}")
    try:
        return _OpenPlan(unpack_snapshot(plan, storage.read, folder.path), folder)
    except BaseException:
        folder.remove()
        raise


_PLANS: Final = _OpenPlans()
