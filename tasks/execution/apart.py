"""An executor for batches that run apart: in other processes, or on other machines."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from passgate.tasks.execution.coordinator import Executor, Round
from passgate.tasks.model.run import Batch, BatchOutcome
from passgate.tasks.model.trial import TrialStatus

RunBatch = Callable[[Batch], Awaitable[BatchOutcome]]  # Has a batch run somewhere, by `run_batch`


def apart(run_one: RunBatch, *, workers: int, trials_at_once: int, cost_left: float | None) -> Executor:
    """An executor that has each batch run by itself, so many batches at once.

    So many trials run at once over all batches, and all together they spend no more than what is left of the cost cap:
    each batch gets a share of it, by the number of its trials. What a batch has not spent is shared out again among
    those whose share was too small, until no money is left or none of it helps.
    """
    return partial(_execute, run_one, min(workers, trials_at_once), trials_at_once, _Money(cost_left))


class _Money:
    """What is left of the cost cap of a run, in US dollars."""

    def __init__(self, left: float | None) -> None:
        self.left = left

    def shares(self, batches: Sequence[Batch]) -> list[float | None]:
        """What each of some batches may spend."""
        if self.left is None:
            return [None] * len(batches)
        every = sum(len(batch.trials) for batch in batches)
        return [self.left * len(batch.trials) / every for batch in batches]

    def spend(self, amount: float) -> None:
        if self.left is not None:
            self.left = max(0.0, self.left - amount)


async def _execute(
    run_one: RunBatch,
    workers: int,
    trials_at_once: int,
    money: _Money,
    current: Round,
    ended: Callable[[BatchOutcome], None],
) -> None:
    slots = asyncio.Semaphore(workers)
    pending = [_ordered(batch, current.order) for batch in current.batches]
    while pending:
        before, handed_out = money.left, len(pending)
        at_once = max(1, trials_at_once // min(workers, handed_out))
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(
                    _run_one(
                        run_one, batch.model_copy(update={"max_cost": share, "trials_at_once": at_once}), slots, ended
                    )
                )
                for batch, share in zip(pending, money.shares(pending), strict=True)
            ]
        outcomes = [one.result() for one in running]
        money.spend(sum(outcome.spent for outcome in outcomes))
        unpaid = [_unpaid(batch, outcome) for batch, outcome in zip(pending, outcomes, strict=True)]
        pending = [batch for batch in unpaid if batch is not None]
        # A batch alone has had all the money; and where nothing was spent, the next shares would be the same.
        if handed_out == 1 or not money.left or (money.left == before and len(pending) == handed_out):
            return


async def _run_one(
    run_one: RunBatch, batch: Batch, slots: asyncio.Semaphore, ended: Callable[[BatchOutcome], None]
) -> BatchOutcome:
    async with slots:
        outcome = await run_one(batch)
    ended(outcome)
    return outcome


def _ordered(batch: Batch, order: Sequence[tuple[str, int]]) -> Batch:
    """The batch with its trials in an order of all of the round; those that are not in it have finished before."""
    places = {key: place for place, key in enumerate(order)}
    return batch.model_copy(update={"trials": tuple(sorted(batch.trials, key=lambda key: places.get(key, -1)))})


def _unpaid(batch: Batch, outcome: BatchOutcome) -> Batch | None:
    """The trials of a batch for which its share was too small; `None` where there is none."""
    unpaid = {(one.task_id, one.trial) for one in outcome.trials if one.status is TrialStatus.NOT_RUN}
    return batch.model_copy(update={"trials": tuple(key for key in batch.trials if key in unpaid)}) if unpaid else None
