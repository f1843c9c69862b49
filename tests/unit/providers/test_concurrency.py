import asyncio

import pytest

from passgate.tasks.providers.concurrency import ConcurrencyLimiter, Window
from tests.unit.conftest import LONG, LoopClock
from tests.waiting import LIMIT


def full(size: float) -> ConcurrencyLimiter:
    """As many calls under way as the window holds."""
    return ConcurrencyLimiter(Window(size), in_flight=int(size))


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_round_trip_of_successes_makes_a_used_window_larger_by_one_and_an_unused_one_stays_as_it_is() -> None:
    window = Window(10)
    for _ in range(10):
        window.grow(in_flight=10)
    assert window.size == pytest.approx(11, abs=0.1)
    window = Window(10)
    window.grow(in_flight=4)
    assert window.size == 10


def test_an_overload_halves_what_is_under_way() -> None:
    window = Window(64)
    window.shrink(in_flight=64, epoch=0)
    assert window.size == 32
    window.shrink(in_flight=8, epoch=1)
    assert window.size == 4


async def test_turns_go_to_the_oldest_call_first() -> None:
    turns, got = full(1), []

    async def take(age: int) -> None:
        assert await turns.enter(age)
        got.append(age)

    tasks = [asyncio.create_task(take(age)) for age in (5, 3, 9, 1)]
    await settled()
    assert got == []
    for _ in tasks:
        turns.leave()
        await settled()
    assert got == [1, 3, 5, 9]
    assert turns.in_flight == 1


async def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    turns = full(1)
    waiting = asyncio.create_task(turns.enter(1))
    await settled()
    turns.leave()
    newcomer = asyncio.create_task(turns.enter(2))
    await settled()
    assert waiting.done()
    assert not newcomer.done()
    turns.leave()
    assert await newcomer


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_cancelled_call_takes_no_turn_and_loses_none(at_once: bool) -> None:
    turns = full(1)
    waiting = asyncio.create_task(turns.enter(1))
    await settled()
    if at_once:  # The turn is given and the call is cancelled before it hears of it.
        turns.leave()
        waiting.cancel()
    else:
        waiting.cancel()
        await settled()
        turns.leave()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert turns.in_flight == 0
    assert await asyncio.wait_for(turns.enter(2), LIMIT)


@pytest.mark.parametrize("held", [(LONG, LONG / 2), (LONG / 2, LONG)])
async def test_nobody_is_let_in_while_turns_are_held(held: tuple[float, float], clock: LoopClock) -> None:
    turns = ConcurrencyLimiter()
    for seconds in held:
        turns.hold(seconds)
    waiting = asyncio.create_task(turns.enter(1))
    clock.forward(LONG * 0.75)
    await settled()
    assert not waiting.done()
    clock.forward(LONG * 0.25)
    assert await asyncio.wait_for(waiting, LIMIT)
    assert await asyncio.wait_for(turns.enter(2), LIMIT)
