"""Slots for trials."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.execution.scheduler import Scheduler, TrialKey


async def ask(scheduler: Scheduler, keys: list[TrialKey]) -> tuple[list[TrialKey], int]:
    """The order in which trials began that asked in this order, and how many ran at once at most."""
    began: list[TrialKey] = []
    running = most = 0

    async def trial(key: TrialKey) -> None:
        nonlocal running, most
        async with scheduler.slot(key):
            began.append(key)
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    async with asyncio.TaskGroup() as group:
        for key in keys:
            group.create_task(trial(key))
    return began, most


KEYS: list[TrialKey] = [(task, trial) for task in "abc" for trial in range(3)]


async def test_without_an_order_who_asks_first_begins_first() -> None:
    assert await ask(Scheduler(2), KEYS[::-1]) == (KEYS[::-1], 2)


@given(st.permutations(KEYS), st.integers(1, 12))
def test_with_an_order_trials_begin_in_it_however_they_ask(asked: list[TrialKey], at_once: int) -> None:
    began, most = asyncio.run(ask(Scheduler(at_once, KEYS), asked))
    # Those that are let in together may pass each other at the door.
    assert all(abs(began.index(key) - place) < at_once for place, key in enumerate(KEYS))
    assert most <= at_once


async def test_a_trial_that_does_not_ask_is_waited_for_and_not_for_ever() -> None:
    scheduler = Scheduler(1, KEYS, wait_seconds=0.05)
    began, _ = await ask(scheduler, [KEYS[5], KEYS[3], KEYS[4]])
    assert began == KEYS[3:6]


async def test_who_asks_in_time_keeps_its_place() -> None:
    scheduler, began = Scheduler(1, KEYS[:3], wait_seconds=5.0), []

    async def trial(key: TrialKey, later: float) -> None:
        await asyncio.sleep(later)
        async with scheduler.slot(key):
            began.append(key)

    await asyncio.gather(*(trial(key, later) for key, later in zip(KEYS, (0.06, 0.03, 0.0), strict=False)))
    assert began == KEYS[:3]


async def test_who_asks_late_has_its_place_among_those_who_still_wait() -> None:
    scheduler, began = Scheduler(1, KEYS[:4], wait_seconds=0.02), []
    release = asyncio.Event()

    async def trial(key: TrialKey) -> None:
        async with scheduler.slot(key):
            began.append(key)
            await release.wait()

    async with asyncio.TaskGroup() as group:
        for key in KEYS[1:4]:
            group.create_task(trial(key))
        await asyncio.sleep(0.1)
        assert began == [KEYS[1]]
        group.create_task(trial(KEYS[0]))
        await asyncio.sleep(0)
        release.set()
    assert began == [KEYS[1], KEYS[0], KEYS[2], KEYS[3]]


async def test_who_is_late_is_waited_for_once_however_many_there_are() -> None:
    """As when whoever starts the trials holds some back until others have finished."""
    scheduler = Scheduler(1, KEYS, wait_seconds=0.05)
    clock = asyncio.get_running_loop().time
    started = clock()
    began, _ = await ask(scheduler, KEYS[3:])
    assert began == KEYS[3:]
    assert (await ask(scheduler, KEYS[:3]))[0] == KEYS[:3]
    assert clock() - started < 0.5


async def test_a_trial_that_fails_gives_its_slot_back() -> None:
    scheduler = Scheduler(1)
    with pytest.raises(ValueError, match="bad"):
        async with scheduler.slot(("a", 0)):
            raise ValueError("bad")
    assert await ask(scheduler, KEYS) == (KEYS, 1)


async def test_who_is_cancelled_is_waited_for_no_longer() -> None:
    scheduler = Scheduler(1, KEYS)

    async def wait(key: TrialKey) -> None:
        async with scheduler.slot(key):
            await asyncio.sleep(10)

    first, second = asyncio.create_task(wait(KEYS[0])), asyncio.create_task(wait(KEYS[1]))
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    await asyncio.wait({first, second})
    assert await ask(scheduler, KEYS[2:]) == (KEYS[2:], 1)


async def test_who_is_cancelled_when_its_turn_has_come_gives_it_back() -> None:
    scheduler = Scheduler(1)
    entered = asyncio.Event()

    async def hold(key: TrialKey) -> None:
        async with scheduler.slot(key):
            entered.set()
            await asyncio.sleep(10)

    first = asyncio.create_task(hold(KEYS[0]))
    await entered.wait()
    second = asyncio.create_task(hold(KEYS[1]))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first}, timeout=0.001)
    second.cancel()
    await asyncio.wait({first, second})
    assert await ask(scheduler, KEYS) == (KEYS, 1)


@pytest.mark.parametrize("order", [[], KEYS])
async def test_when_all_are_cancelled_at_once_none_of_them_gets_anything_but_that(order: list[TrialKey]) -> None:
    scheduler = Scheduler(1, order)

    async def trial(key: TrialKey) -> None:
        async with scheduler.slot(key):
            await asyncio.sleep(60)

    trials = [asyncio.create_task(trial(key)) for key in KEYS]
    await asyncio.sleep(0.01)
    for one in trials:
        one.cancel()
    ends = await asyncio.gather(*trials, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * len(KEYS)
    assert await asyncio.wait_for(ask(scheduler, KEYS[:1]), 5) == (KEYS[:1], 1), "the slot is free again"
