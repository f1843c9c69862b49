"""Slots for trials."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.execution.scheduler import WAIT_SECONDS, Scheduler, TrialKey
from tests.waiting import LIMIT, until

KEYS: list[TrialKey] = [(task, trial) for task in "abc" for trial in range(3)]


async def ask(scheduler: Scheduler, keys: Iterable[TrialKey]) -> tuple[list[TrialKey], int]:
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


async def hold(scheduler: Scheduler, key: TrialKey, began: list[TrialKey]) -> None:
    """A trial that goes on until it is cancelled."""
    async with scheduler.slot(key):
        began.append(key)
        await asyncio.Event().wait()


@pytest.fixture
async def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long has been waited for trials that do not ask, in seconds. Each wait is over at once."""
    loop = asyncio.get_running_loop()
    made: list[float] = []
    real = loop.call_later

    def call_later(delay: float, *rest: Any) -> asyncio.TimerHandle:
        made.append(delay)
        return real(0.0, *rest)

    monkeypatch.setattr(loop, "call_later", call_later)
    return made


async def test_without_an_order_who_asks_first_begins_first() -> None:
    assert await ask(Scheduler(2), KEYS[::-1]) == (KEYS[::-1], 2)


@given(st.permutations(KEYS), st.integers(1, 12))
def test_with_an_order_trials_begin_in_it_however_they_ask(asked: list[TrialKey], at_once: int) -> None:
    began, most = asyncio.run(ask(Scheduler(at_once, KEYS), asked))
    # Those that are let in together may pass each other at the door.
    assert all(abs(began.index(key) - place) < at_once for place, key in enumerate(KEYS))
    assert most <= at_once


async def test_who_asks_in_time_keeps_its_place() -> None:
    scheduler = Scheduler(1, KEYS[:3], wait_seconds=LIMIT)
    first = asyncio.create_task(ask(scheduler, KEYS[2:0:-1]))
    await until(lambda: len(asyncio.all_tasks()) > 3)
    assert await ask(scheduler, KEYS[:1]) == (KEYS[:1], 1)
    assert await first == (KEYS[1:3], 1)


async def test_trials_that_do_not_ask_are_waited_for_once_and_not_for_ever(waits: list[float]) -> None:
    """As when whoever starts the trials holds some back until others have finished."""
    scheduler = Scheduler(1, KEYS)
    assert await ask(scheduler, [KEYS[5], KEYS[3], KEYS[4]]) == (KEYS[3:6], 1)
    assert await ask(scheduler, KEYS[6:]) == (KEYS[6:], 1)
    assert await ask(scheduler, KEYS[:3]) == (KEYS[:3], 1)
    assert waits == [WAIT_SECONDS]


async def test_who_asks_late_has_its_place_among_those_who_still_wait(waits: list[float]) -> None:
    scheduler, began = Scheduler(1, KEYS[:4]), list[TrialKey]()
    first = asyncio.create_task(hold(scheduler, KEYS[1], began))
    others = asyncio.create_task(ask(scheduler, KEYS[2:4]))
    await until(lambda: began)
    late = asyncio.create_task(ask(scheduler, KEYS[:1]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    done, _ = await asyncio.wait([late, others], return_when=asyncio.FIRST_COMPLETED)
    assert done == {late}
    assert await others == (KEYS[2:4], 1)


async def test_a_trial_that_fails_gives_its_slot_back() -> None:
    scheduler = Scheduler(1)
    with pytest.raises(ValueError, match="bad"):
        async with scheduler.slot(("a", 0)):
            raise ValueError("bad")
    assert await ask(scheduler, KEYS) == (KEYS, 1)


async def test_who_is_cancelled_is_waited_for_no_longer() -> None:
    scheduler = Scheduler(1, KEYS)
    trials = [asyncio.create_task(hold(scheduler, key, [])) for key in KEYS[:2]]
    await asyncio.sleep(0)
    for one in reversed(trials):
        one.cancel()
    await asyncio.wait(trials)
    assert await ask(scheduler, KEYS[2:]) == (KEYS[2:], 1)


async def test_who_is_cancelled_when_its_turn_has_come_gives_it_back() -> None:
    scheduler, began = Scheduler(1), list[TrialKey]()
    first, second = (asyncio.create_task(hold(scheduler, key, began)) for key in KEYS[:2])
    await until(lambda: began)
    first.cancel()
    await asyncio.sleep(0)  # the first has given its slot to the second, which has not gone on yet
    second.cancel()
    await asyncio.wait({first, second})
    assert began == KEYS[:1]
    assert await ask(scheduler, KEYS) == (KEYS, 1)


@pytest.mark.parametrize("order", [[], KEYS])
async def test_when_all_are_cancelled_at_once_none_of_them_gets_anything_but_that(order: list[TrialKey]) -> None:
    scheduler, began = Scheduler(1, order), list[TrialKey]()
    trials = [asyncio.create_task(hold(scheduler, key, began)) for key in KEYS]
    await until(lambda: began)
    for one in trials:
        one.cancel()
    ends = await asyncio.gather(*trials, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * len(KEYS)
    assert await ask(scheduler, KEYS[:1]) == (KEYS[:1], 1), "the slot is free again"
