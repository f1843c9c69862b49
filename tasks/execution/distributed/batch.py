"""The one seam where trials run: a run store and a batch in, the outcome of the batch out."""

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial

from passgate import __version__
from passgate.tasks.errors import EngineError, StorageError, UsageError, first_known
from passgate.tasks.execution.distributed.earlier_attempts import EarlierAttempts
from passgate.tasks.execution.distributed.orders import read_orders, write_released
from passgate.tasks.execution.resources import GradeTrial
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.shared_limit import OpenLimit, not_shared
from passgate.tasks.execution.waiting import WaitingTrials
from passgate.tasks.execution.worker import open_worker, trials_at_once
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.history.journal import Journal, JournalBusyError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.run import Batch, BatchOutcome, Plan, Released
from passgate.tasks.planning.snapshot import with_files_in

_BUSY_SECONDS = 0.2
_ORDERS_SECONDS = 1.0  # How often a batch looks for the coordinator's orders
_ORDERS_SECONDS_ELSEWHERE = 2.0  # At a URL, where each look of each batch is a request


def run_batch(store: str, batch: Batch, grade: GradeTrial, open_limit: OpenLimit = not_shared) -> BatchOutcome:
    """Run what is missing of a batch of the run that is kept at a location; in any process, on plain values.

    It opens what its trials need, and writes each to a part of the journal that is the batch's own. Before that it
    reads which trials this part holds, so that a batch that is handed out again repeats none that has finished; while
    another process runs the same batch on this machine, it waits for its end. Meanwhile it follows the orders of the
    coordinator. `grade` is a function of a module; `open_limit` opens the limit that runs share.

    Raises `UsageError`, `StorageError`, `MeasurementError` where the trials cannot begin, and `EngineError` where the
    coordinator has ended the batch.
    """
    _refuse_other_version(batch.passgate_version)
    try:
        return asyncio.run(_run_batch(RunStore(store), batch, grade, open_limit))
    except ExceptionGroup as group:
        known = first_known(group)
        if known is None:
            raise
    # Not in the handler: an error whose context is a group that it is in cannot be pickled, as task runners have to.
    raise known


def _refuse_other_version(coordinator: str | None) -> None:
    """Raise `UsageError` where the coordinator has another version: it may grade and count in another way."""
    if coordinator not in (None, __version__):
        here = f"the worker on {socket.gethostname()} has passgate {__version__}"
        raise UsageError(f"{here}, and the run is coordinated by {coordinator}: install passgate {coordinator} there")


async def _run_batch(store: RunStore, batch: Batch, grade: GradeTrial, open_limit: OpenLimit) -> BatchOutcome:
    plan = store.read_plan(batch.plan_digest)
    with temporary_folder(f"files-{plan.run_id}") as folder:
        return await _run_here(with_files_in(plan, store, folder), store, batch, grade, open_limit)


async def _run_here(
    plan: Plan, store: RunStore, batch: Batch, grade: GradeTrial, open_limit: OpenLimit
) -> BatchOutcome:
    part, at_once = part_of(batch), batch.trials_at_once or trials_at_once(plan)
    with ExitStack() as stack:
        journal = await _entered(store.open_journal(part), stack)
        journal.drop_torn_line()
        earlier = EarlierAttempts(store, batch, part)
        cost_cap = _cost_cap(plan, batch, earlier)
        opened = open_worker(plan, journal, earlier.finished, cost_cap, grade, open_limit, at_once)
        async with opened as worker:
            waiting = WaitingTrials(key for key in batch.trials if key not in earlier.keys)
            scheduler = Scheduler(at_once)
            running = asyncio.create_task(worker.run_trials(batch.name, waiting, scheduler))
            outcome = await _following_orders(running, partial(_follow, store, batch, waiting, cost_cap))
    return earlier.and_then(outcome.model_copy(update={"call_cost": cost_cap.call_cost}))


def _cost_cap(plan: Plan, batch: Batch, earlier: EarlierAttempts) -> CostCap:
    """The batch's share of the cost cap of the run, which a resumed run may have changed."""
    if batch.max_cost is None:
        return CostCap()
    share = batch.max_cost - earlier.released.cost
    return CostCap(plan.request.max_cost or batch.max_cost, share=share, spent=earlier.spent, call_cost=batch.call_cost)


async def _entered(opened: AbstractContextManager[Journal], stack: ExitStack) -> Journal:
    """Enter a part of the journal, once whoever has it has ended: an engine may hand out a batch that still runs."""
    while True:
        try:
            return stack.enter_context(opened)
        except JournalBusyError:
            await asyncio.sleep(_BUSY_SECONDS)


async def _following_orders(
    running: "asyncio.Task[BatchOutcome]", follow: Callable[[], Awaitable[None]]
) -> BatchOutcome:
    """What a running batch comes to, unless the coordinator ends it before; then raises `EngineError`."""
    following = asyncio.ensure_future(follow())
    try:
        await asyncio.wait([running, following], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        following.result()
        raise EngineError("the batch was ended: nobody coordinates it any more")
    finally:
        following.cancel()
        running.cancel()
        await asyncio.wait([running, following])


async def _follow(store: RunStore, batch: Batch, waiting: WaitingTrials, cost_cap: CostCap) -> None:
    """Do what the coordinator tells, until it ends the batch. Orders that cannot be read are read again."""
    while True:
        await asyncio.sleep(_ORDERS_SECONDS_ELSEWHERE if store.is_elsewhere else _ORDERS_SECONDS)
        with suppress(StorageError):
            orders = await asyncio.to_thread(read_orders, store)
            if orders is None or not batch.coordinator:
                continue
            if orders.ended or orders.coordinator != batch.coordinator:
                return
            if batch.number in orders.divide and not waiting.released:
                await _release(store, part_of(batch), waiting, cost_cap, orders.divide[batch.number])


async def _release(store: RunStore, part: str, waiting: WaitingTrials, cost_cap: CostCap, parts: int) -> None:
    """Give back all but one of so many parts of the trials that wait, with their part of the money that is free."""
    every = len(waiting.keys)
    trials = waiting.release(parts)
    if trials:
        released = Released(trials=trials, cost=cost_cap.give_back(len(trials) / every))
        await asyncio.to_thread(write_released, store, part, released)


def part_of(batch: Batch) -> str:
    """The part of the journal that a batch writes, the same in every attempt at it."""
    return hashlib.sha256(f"{batch.step} {batch.name} {batch.coordinator} {batch.number}".encode()).hexdigest()[:16]
