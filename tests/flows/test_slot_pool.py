"""The slots that a process has of a limit that others share."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from passgate.flows.concurrency_limit import GlobalLimit, SlotPool
from passgate.tasks.errors import UsageError


class CountingLimit(GlobalLimit):
    """A limit as a Prefect server has one: it counts slots, and what it is asked."""

    name = "provider"

    def __init__(self, size: int) -> None:
        self.size, self.taken, self.requests = size, 0, 0
        self.leases = set[UUID]()

    async def _asked(self) -> None:
        self.requests += 1
        await asyncio.sleep(0)

    async def is_full(self) -> bool:
        await self._asked()
        return self.taken >= self.size

    async def take(self) -> UUID | None:
        await self._asked()
        if self.taken >= self.size:
            return None
        self.taken += 1
        lease = uuid4()
        self.leases.add(lease)
        return lease

    async def renew(self, lease: UUID) -> bool:
        await self._asked()
        return lease in self.leases

    async def release(self, lease: UUID) -> None:
        await self._asked()
        self.taken -= lease in self.leases
        self.leases.discard(lease)

    async def release_forgotten(self) -> None:
        await self._asked()
        self.taken -= 1


class MissingLimit(CountingLimit):
    async def take(self) -> UUID | None:
        raise UsageError("the Prefect server has no such limit")


async def run_trials(pool: SlotPool, trials: int, work: Callable[[], Awaitable[None]], at_once: int = 64) -> None:
    turns = asyncio.Semaphore(at_once)

    async def trial() -> None:
        async with turns, pool.slot():
            await work()

    async with pool.open(5), asyncio.TaskGroup() as group:
        for _ in range(trials):
            group.create_task(trial())


@pytest.mark.parametrize(("size", "trials_at_once"), [(100, 8), (100, 64), (5, 64), (1, 1)])
def test_trials_hand_slots_on_and_ask_for_few(size: int, trials_at_once: int) -> None:
    limit, most, running = CountingLimit(size), 0, 0

    async def work() -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        assert running <= limit.taken <= size
        await asyncio.sleep(0)
        running -= 1

    asyncio.run(run_trials(SlotPool(limit, lambda _: None), 300, work, trials_at_once))
    assert 1 <= most <= min(size, trials_at_once)
    assert limit.taken == 0
    assert limit.requests <= 3 * min(size, trials_at_once) + 10


def test_several_processes_hold_no_more_than_the_limit_and_all_come_to_their_end() -> None:
    limit, most = CountingLimit(3), 0

    async def work() -> None:
        nonlocal most
        most = max(most, limit.taken)
        await asyncio.sleep(0.001)

    async def both() -> None:
        pools = [SlotPool(limit, lambda _: None) for _ in range(2)]
        await asyncio.gather(*(run_trials(pool, 20, work) for pool in pools))

    asyncio.run(both())
    assert (most, limit.taken) == (3, 0)


def test_slots_of_a_server_that_has_forgotten_its_leases_go_back() -> None:
    limit = CountingLimit(4)

    async def forgotten() -> None:
        limit.leases.clear()

    asyncio.run(run_trials(SlotPool(limit, lambda _: None), 1, forgotten))
    assert limit.taken == 0


def test_whoever_waits_hears_that_there_is_no_limit() -> None:
    async def never() -> None:
        raise AssertionError

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(run_trials(SlotPool(MissingLimit(4), lambda _: None), 3, never))
    assert raised.group_contains(UsageError, match="no such limit")


def test_a_trial_that_is_cancelled_while_it_waits_takes_no_slot_with_it() -> None:
    limit = CountingLimit(1)

    async def cancelling() -> None:
        pool = SlotPool(limit, lambda _: None)

        async def wait_for_slot() -> None:
            async with pool.slot():
                raise AssertionError

        async with pool.open(5):
            async with pool.slot():
                waiting = asyncio.create_task(wait_for_slot())
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            async with pool.slot():
                assert limit.taken == 1

    asyncio.run(cancelling())
    assert limit.taken == 0
