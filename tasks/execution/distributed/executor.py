"""An executor for distributed batches, which run in other processes, or on other machines."""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from passgate import __version__
from passgate.tasks.errors import EngineError, StorageError, WorkerLostError
from passgate.tasks.execution.coordinator import Executor, Round
from passgate.tasks.execution.distributed.batch import part_of
from passgate.tasks.execution.distributed.batch_sizes import divided, joined, sized, slots
from passgate.tasks.execution.distributed.cost_shares import CostShares
from passgate.tasks.execution.distributed.ended_trials import EndedTrials
from passgate.tasks.execution.distributed.orders import read_released, write_orders
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Batch, BatchOrders, BatchOutcome, Released
from passgate.tasks.model.trial import FinishedTrial, TrialStatus

RunBatch = Callable[[Batch], Awaitable[BatchOutcome]]
"""Has a batch run somewhere, by `run_batch`. Raises `WorkerLostError` where its process has not come to its end."""

POLL_SECONDS: Final = 1.0
MOST_TASK_RUNS: Final = 200
_WORTH_SECONDS: Final = 5.0  # To divide a batch that takes less is not worth another task run
_MOST_LOSSES: Final = 3  # One after the other, without a trial that has ended in between


@asynccontextmanager
async def distributed_executor(
    run_one: RunBatch,
    store: RunStore,
    *,
    workers: int,
    trials_at_once: int,
    cost_left: float | None,
    finished: Iterable[FinishedTrial] = (),
) -> AsyncIterator[Executor]:
    """An executor that has each batch run by itself, so many batches at once, for as long as the context lasts.

    So many trials run at once over all batches, and all together they spend no more than what is left of the cost cap:
    each batch gets a share of it, by the number of its trials. What a batch has not spent is shared out again among
    those whose share was too small, until no money is left or none of it helps. A batch whose worker is lost is run
    again; what of it has ended is not. Where workers are idle, a batch that takes long gives back some of its trials.

    `finished` are the trials that the journal holds. The executor raises what a batch raises, and `EngineError` where
    workers are lost again and again. When the context ends, batches that still run anywhere end soon.
    """
    known = {one.trial.task_id for one in finished}
    executor = _DistributedExecutor(run_one, store, workers, trials_at_once, CostShares(cost_left), known)
    await executor.give_orders()
    try:
        yield executor.run_round
    finally:
        with suppress(StorageError):
            await executor.give_orders(ended=True)


@dataclass
class _Running:
    """A batch that is handed out."""

    batch: Batch
    trials_at_once: int
    began: float = field(default_factory=time.monotonic)
    released: Released | None = None

    @property
    def is_divided(self) -> bool:
        return self.released is not None


class _DistributedExecutor:
    """Hands out batches and takes back what they have come to."""

    def __init__(
        self,
        run_one: RunBatch,
        store: RunStore,
        workers: int,
        trials_at_once: int,
        shares: CostShares,
        known: set[str],
    ) -> None:
        self._run_one = run_one
        self._store = store
        self._workers = min(workers, trials_at_once)
        self._trials_at_once = trials_at_once
        self._shares = shares
        self._known = known  # Eval tasks that have trials in the journal
        self._coordinator = secrets.token_hex(8)
        self._numbers = count(1)
        self._task_runs = 0
        self._divisions: dict[int, int] = {}
        self._ended_trials = EndedTrials(store)

    async def give_orders(self, *, ended: bool = False) -> None:
        """Tell every batch of the run. Raises `StorageError`."""
        orders = BatchOrders(coordinator=self._coordinator, divide=dict(self._divisions), ended=ended)
        await asyncio.to_thread(write_orders, self._store, orders)

    async def run_round(self, current: Round, ended: Callable[[BatchOutcome], None]) -> None:
        """As of `Executor`."""
        workers = self._workers
        batches = sized(current, workers)
        while batches:
            before = self._shares.left
            unpaid = await self._run_all(batches, ended)
            # A batch alone has had all the money.
            if not unpaid or not self._shares.left or len(batches) == 1:
                return
            # Where nothing was spent, other shares would not help either.
            workers = max(1, workers // 2) if self._shares.left < (before or 0.0) else 1
            batches = joined(unpaid, workers)

    async def _run_all(self, batches: Sequence[Batch], ended: Callable[[BatchOutcome], None]) -> list[Batch]:
        """Run batches side by side; gives the trials of them for which the share was too small."""
        waiting, unpaid = deque(batches), list[Batch]()
        idle = slots(self._trials_at_once, min(self._workers, max(1, len(batches))))
        running: dict[asyncio.Task[BatchOutcome], _Running] = {}
        try:
            while waiting or running:
                while waiting and idle:
                    one = self._handed_out(waiting, idle.pop(0))
                    running[asyncio.create_task(self._attempted(one.batch))] = one
                looking = bool(idle)
                for task in await _some_done(running, POLL_SECONDS if looking else None):
                    one, outcome = running.pop(task), task.result()
                    idle.append(one.trials_at_once)
                    self._take_back(one, outcome)
                    ended(outcome)
                    unpaid.extend(_unpaid(one.batch, outcome))
                    if not one.is_divided and outcome.released:
                        waiting.extend(divided(one.batch, outcome.released, len(idle)))
                if looking and running:
                    waiting.extend(await self._given_back(list(running.values()), len(idle)))
        finally:
            await _cancelled(running)
        return unpaid

    def _handed_out(self, waiting: deque[Batch], trials_at_once: int) -> _Running:
        every = sum(len(batch.trials) for batch in waiting)
        batch = waiting.popleft()
        tasks = {task_id for task_id, _ in batch.trials}
        update = {
            "number": next(self._numbers),
            "coordinator": self._coordinator,
            "passgate_version": __version__,
            "trials_at_once": trials_at_once,
            "max_cost": self._shares.share(batch, every),
            "call_cost": self._shares.call_cost,
            "continued": batch.continued or not tasks.isdisjoint(self._known),
        }
        self._known |= tasks
        return _Running(batch.model_copy(update=update), trials_at_once)

    async def _attempted(self, batch: Batch) -> BatchOutcome:
        """Have a batch run, and run again as long as its workers are lost and some of its trials have ended."""
        losses, before = 0, 0
        while True:
            self._task_runs += 1
            try:
                return await self._run_one(batch)
            except WorkerLostError as error:
                ended = await self._ended_trials.count(batch.trials)
                losses, before = (losses + 1 if ended == before else 1), ended
                if losses == _MOST_LOSSES:
                    message = f"the batch {batch.name!r} lost its worker {losses} times: {error}"
                    raise EngineError(message) from error

    def _take_back(self, one: _Running, outcome: BatchOutcome) -> None:
        """What a batch has not spent of its share, but for what it has given back before."""
        self._shares.call_cost = outcome.call_cost or self._shares.call_cost
        if one.batch.max_cost is not None:
            given_back = one.released.cost if one.released is not None else 0.0
            self._shares.take_back(one.batch.max_cost - given_back - outcome.spent)
        self._divisions.pop(one.batch.number, None)

    async def _given_back(self, running: Sequence[_Running], idle: int) -> list[Batch]:
        """What batches have given back, for idle workers. Where nothing is to come, the longest one is told to."""
        ordered = [one for one in running if one.batch.number in self._divisions and not one.is_divided]
        batches: list[Batch] = []
        for one in ordered:
            with suppress(StorageError):
                one.released = await asyncio.to_thread(read_released, self._store, part_of(one.batch))
            if one.released is not None:
                self._shares.take_back(one.released.cost)
                batches.extend(divided(one.batch, one.released.trials, idle))
        if not ordered and self._task_runs + idle <= MOST_TASK_RUNS:
            await self._divide_longest(running, idle)
        return batches

    async def _divide_longest(self, running: Sequence[_Running], idle: int) -> None:
        """Have the batch that will take the longest give back what idle workers can run."""
        left = {one.batch.number: await self._seconds_left(one) for one in running if not one.is_divided}
        longest = max(left, key=left.__getitem__, default=None)
        if longest is not None and left[longest] > _WORTH_SECONDS:
            self._divisions[longest] = idle + 1
            with suppress(StorageError):  # the orders are given again when the next batch is to be divided
                await self.give_orders()

    async def _seconds_left(self, one: _Running) -> float:
        """How long a batch will go on to begin trials, by its pace so far; 0 where all have begun."""
        ended = await self._ended_trials.count(one.batch.trials)
        passed = time.monotonic() - one.began
        waiting = len(one.batch.trials) - ended - one.trials_at_once
        return max(0, waiting) * passed / max(1, ended)


async def _some_done(
    running: Iterable[asyncio.Task[BatchOutcome]], seconds: float | None
) -> set[asyncio.Task[BatchOutcome]]:
    done, _ = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _cancelled(running: Iterable[asyncio.Task[BatchOutcome]]) -> None:
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def _unpaid(batch: Batch, outcome: BatchOutcome) -> list[Batch]:
    """The trials of a batch for which its share was too small, if there are any."""
    keys = {(one.task_id, one.trial) for one in outcome.trials if one.status is TrialStatus.NOT_RUN}
    unpaid = tuple(key for key in batch.trials if key in keys)
    return [batch.model_copy(update={"trials": unpaid})] if unpaid else []
