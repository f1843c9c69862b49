"""Budgets that hold before a call is sent."""

import asyncio
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError, UnknownPriceError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.ledger import AdmittedCall, Ledger, RefusalError
from passgate.tasks.model.price import Charges, Price, PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ModelRequest
from tests.waiting import LIMIT

PRICES = PriceTable(models={"known": Price(input=1000, output=2000, cached_input=100)})
"""A token in costs 0.1 cents, a token out 0.2 cents."""


def request(characters: int = 100, max_tokens_out: int | None = None) -> ModelRequest:
    return ModelRequest("known", False, max_tokens_out, (), (), False, characters)


def a_ledger(
    *, prices: PriceTable = PRICES, cost_cap: CostCap | None = None, needs_price: str | None = None, **budgets: Any
) -> Ledger:
    return Ledger(Budgets(**budgets), prices.price, cost_cap or CostCap(), needs_price=needs_price)


async def spend(ledger: Ledger, tokens_in: int = 10, tokens_out: int = 10, characters: int = 100) -> Usage:
    admission = await ledger.admit(request(characters), "known")
    return ledger.settle(admission, Usage(tokens_in=tokens_in, tokens_out=tokens_out))


async def refusal(ledger: Ledger, model: str = "known", characters: int = 100) -> RefusalError:
    with pytest.raises(RefusalError) as caught:
        await ledger.admit(request(characters), model)
    return caught.value


async def test_a_call_that_was_not_answered_is_no_step_and_what_is_none_passes_when_they_are_used_up() -> None:
    ledger = a_ledger(max_steps=1)
    ledger.release(await ledger.admit(request(), "known"))
    await spend(ledger)
    assert isinstance((await ledger.admit(request(), "known", is_step=False)), AdmittedCall)
    await refusal(ledger)


async def test_once_over_whoever_waits_is_told_nothing_passes_and_the_first_reason_stays() -> None:
    ledger = a_ledger(max_steps=1, max_tool_calls=0)
    waiting = asyncio.ensure_future(ledger.over())
    await spend(ledger)
    await asyncio.sleep(0)
    assert not waiting.done()
    await refusal(ledger)
    await asyncio.wait_for(waiting, LIMIT)
    assert not ledger.take_tool_call()
    assert "max_steps" in str(await refusal(ledger))


async def most_out(ledger: Ledger, characters: int = 100) -> int | None:
    """How many tokens the reply to a call may have that is alone."""
    admission = await ledger.admit(request(characters), "known")
    ledger.release(admission)
    return admission.max_tokens_out


async def test_tokens_used_up_end_the_trial() -> None:
    ledger = a_ledger(max_tokens=40)
    await spend(ledger)
    assert await most_out(ledger, 50) == 15, "50 characters have at least 5 tokens where 100 had 10"
    await spend(ledger, characters=50)
    assert "max_tokens is 40, the trial used 40" in str(await refusal(ledger, characters=10))


async def test_a_conversation_that_grows_needs_at_least_its_last_input_again() -> None:
    ledger = a_ledger(max_tokens=100)
    await spend(ledger, tokens_in=40, tokens_out=5, characters=200)
    assert await most_out(ledger, 200) == 15
    assert await most_out(ledger, 199) == 55 - 199 // 8
    await spend(ledger, tokens_in=10, tokens_out=0, characters=10)
    await spend(ledger, tokens_in=44, tokens_out=0, characters=220)
    assert "the next call needs 45" in str(await refusal(ledger, characters=230))


@pytest.mark.parametrize("calls", range(1, 30))
async def test_a_budget_is_used_up_to_the_last_cent_whatever_the_rounding(calls: int) -> None:
    ledger = a_ledger(prices=PriceTable(models={"known": Price(input=1000, output=0)}), max_cost_usd=calls * 0.01)
    for _ in range(calls):
        await spend(ledger, tokens_in=10, tokens_out=5, characters=50)
    await refusal(ledger)


async def test_what_costs_nothing_is_never_too_dear() -> None:
    ledger = a_ledger(prices=PriceTable(models={"known": Price(input=0, output=0)}), max_cost_usd=0)
    for _ in range(3):
        assert (await spend(ledger)).cost_usd == 0
    assert (await ledger.admit(request(), "known")).max_tokens_out is None


async def test_the_money_that_is_left_limits_the_reply() -> None:
    ledger = a_ledger(max_cost_usd=0.05)
    await spend(ledger, characters=100)
    # $0.02 are left; the ten tokens of the conversation cost at least $0.001.
    assert await most_out(ledger) == 9


async def test_an_unknown_charge_matters_only_where_money_does() -> None:
    used, charges = Usage(tokens_in=5, tokens_out=5), Charges(tools={"web_search": 1})
    free, limited = a_ledger(), a_ledger(max_cost_usd=1.0)
    for ledger in (free, limited):
        assert ledger.settle(await ledger.admit(request(), "known"), used, charges).cost_usd is None
    assert free.problem is None
    assert isinstance(limited.problem, UnknownPriceError)
    assert 'add to prices.yaml, beside gates.yaml: tools: {"web_search": DOLLARS}' in str(limited.problem)


async def test_an_unknown_price_matters_only_where_money_does() -> None:
    free = a_ledger()
    admission = await free.admit(request(), "unknown")
    assert admission.price is None
    assert free.settle(admission, Usage(tokens_in=5, tokens_out=5)).cost_usd is None
    ledger = a_ledger(max_cost_usd=1.0)
    error = await refusal(ledger, "unknown")
    assert error.code == "price_unknown"
    assert "'unknown' is unknown and the task has a cost budget: add a line under `models:` of prices.yaml" in str(
        error
    )
    assert isinstance(ledger.problem, UnknownPriceError)
    assert ledger.problem.model == "unknown"
    assert ledger.end is None
    gated = a_ledger(needs_price="the gate has a cost limit")
    assert "the gate has a cost limit" in str(await refusal(gated, "unknown"))


async def test_what_was_put_aside_for_a_call_goes_back_or_is_spent() -> None:
    cost_cap = CostCap(1.0)
    ledger = a_ledger(cost_cap=cost_cap)
    await spend(ledger, tokens_in=100, tokens_out=0)
    ledger.release(await ledger.admit(request(), "known"))
    assert cost_cap.spent == pytest.approx(0.1)
    ledger.abandon(await ledger.admit(request(), "known"))
    assert cost_cap.spent == pytest.approx(0.2), "an answer that nobody waited for counts as the mean of the others"
    assert await cost_cap.reserve(0.8, 0.8) is not None
    tokens = a_ledger(max_tokens=1000)
    tokens.abandon(await tokens.admit(request(), "known"))
    assert str(await refusal(tokens)).startswith("over budget: max_tokens is 1000")


async def test_trouble_of_the_provider_is_forgotten_when_a_call_succeeds() -> None:
    ledger = a_ledger()
    ledger.trouble(MeasurementError("down"))
    assert str(ledger.problem) == "down"
    await spend(ledger)
    assert ledger.problem is None
