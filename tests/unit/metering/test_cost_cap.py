"""The money of a run, and a judge that costs money."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.cost_cap import ChargedLlmJudge, CostCap, Reservation, Spent
from passgate.tasks.model.grade import JudgeMessage, JudgeReply, JudgeRequest
from passgate.tasks.model.price import Price
from passgate.tasks.model.transcript import Usage


def reserved(cost_cap: CostCap, at_least: float, at_most: float | None = None) -> Reservation:
    """What is put aside for a call that has room."""
    found = cost_cap.reserve_now(at_least, at_least if at_most is None else at_most)
    assert isinstance(found, Reservation)
    return found


def test_without_a_cap_there_is_always_enough() -> None:
    cost_cap = CostCap()
    for _ in range(3):
        cost_cap.settle(reserved(cost_cap, 1000.0), 1000.0)
    assert cost_cap.spent == 3000.0
    assert not cost_cap.exhausted


def test_what_is_put_aside_counts_before_it_is_spent() -> None:
    cost_cap = CostCap(1.0)
    reserved(cost_cap, 0.1, 0.6)
    assert cost_cap.reserve_now(0.1, 0.6) is None
    assert not cost_cap.exhausted, "the first call may give some of it back"


async def test_whoever_waits_goes_on_when_a_call_gives_back_what_it_did_not_cost() -> None:
    cost_cap = CostCap(1.0)
    first = reserved(cost_cap, 0.1, 0.6)
    second, third = (asyncio.create_task(cost_cap.reserve(0.1, 0.6)) for _ in range(2))
    await asyncio.sleep(0)
    assert not second.done()
    cost_cap.settle(first, 0.1)
    found = await second
    assert found is not None
    assert not third.done()
    cost_cap.release(found)
    assert await third is not None


async def test_whoever_waits_is_refused_once_the_money_is_spent() -> None:
    cost_cap = CostCap(1.0)
    first = reserved(cost_cap, 0.1, 0.9)
    waiting = asyncio.create_task(cost_cap.reserve(0.1, 0.9))
    await asyncio.sleep(0)
    cost_cap.settle(first, 0.95)
    assert await waiting is None
    assert cost_cap.exhausted


def test_a_call_that_is_alone_may_cost_more_than_is_left_and_money_that_was_spent_before_counts() -> None:
    cost_cap = CostCap(1.0, spent=0.5)
    assert reserved(cost_cap, 0.1, 3.0).amount == 0.5
    assert CostCap(1.0, spent=1.0).exhausted
    assert CostCap(0.0).exhausted
    assert not CostCap(1.0, spent=0.5).exhausted


def test_a_call_is_expected_to_cost_what_calls_cost_on_average_and_once_one_was_refused_nothing_more_is_begun() -> None:
    cost_cap = CostCap(1.0)
    for _ in range(2):
        cost_cap.settle(reserved(cost_cap, 0.0), 0.4)
    assert cost_cap.reserve_now(0.0, 0.0) == Spent()
    assert cost_cap.spent == 0.8
    cost_cap = CostCap(1.0)
    cost_cap.settle(reserved(cost_cap, 0.9), 0.9)
    assert cost_cap.reserve_now(0.2, 0.2) == Spent()
    assert cost_cap.reserve_now(0.01, 0.01) == Spent()


def test_a_call_of_unknown_cost_is_taken_for_what_calls_cost_on_average() -> None:
    cost_cap = CostCap(10.0)
    cost_cap.settle(reserved(cost_cap, 0.1, 3.0), 0.25)
    cost_cap.settle(reserved(cost_cap, 0.1, 3.0), None)
    assert cost_cap.spent == 0.5


@given(st.floats(0.01, 10), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=60))
def test_one_call_at_a_time_overdraws_by_one_call_at_most(cap: float, calls: list[tuple[float, float]]) -> None:
    cost_cap = CostCap(cap)
    for least, cost in calls:
        reservation = cost_cap.reserve_now(least, 1.0)
        if not isinstance(reservation, Reservation):
            break
        cost_cap.settle(reservation, cost)
    assert cost_cap.spent <= cap + 1.0


REQUEST = JudgeRequest(messages=(JudgeMessage(role="user", content="?"),), fingerprint="f")
CENT = Price(input=100, output=0)


class Oracle:
    name = "a model"
    votes = 3

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        await asyncio.sleep(0)
        return JudgeReply(text="yes", usage=Usage(tokens_in=100, tokens_out=5))

    async def close(self) -> None:
        pass


class Dead(Oracle):
    async def reply(self, request: JudgeRequest) -> JudgeReply:
        raise MeasurementError("down")


async def test_every_answer_is_paid_for_and_without_money_nobody_is_asked() -> None:
    cost_cap = CostCap(0.01)
    judge = ChargedLlmJudge(Oracle(), CENT, cost_cap)
    reply = await judge.reply(REQUEST)
    assert (judge.name, judge.votes, reply.text) == ("a model", 3, "yes")
    assert reply.usage == Usage(tokens_in=100, tokens_out=5, cost_usd=0.01)
    assert cost_cap.spent == pytest.approx(0.01)
    with pytest.raises(CostCapError, match=r"\$0\.01"):
        await judge.reply(REQUEST)


async def test_an_answer_that_did_not_come_costs_nothing() -> None:
    cost_cap = CostCap(1.0)
    with pytest.raises(MeasurementError, match="down"):
        await ChargedLlmJudge(Dead(), CENT, cost_cap).reply(REQUEST)
    assert cost_cap.spent == 0.0
    assert await cost_cap.reserve(1.0, 1.0) is not None


async def test_an_unknown_price_leaves_the_cost_unknown() -> None:
    reply = await ChargedLlmJudge(Oracle(), None, CostCap()).reply(REQUEST)
    assert reply.usage.cost_usd is None
