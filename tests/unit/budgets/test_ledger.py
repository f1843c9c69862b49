"""Budgets that hold before a call is sent."""

import asyncio
from typing import Any

import pytest

from passgate.tasks.budgets.ledger import Admission, Ledger, RefusalError
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Usage
from passgate.tasks.providers.exchange import ModelRequest

PRICES = PriceTable(models={"known": Price(input=1000, output=2000, cached_input=100)})
"""A token in costs 0.1 cents, a token out 0.2 cents."""


def request(characters: int = 100) -> ModelRequest:
    return ModelRequest("known", False, None, (), (), False, characters)


def a_ledger(*, purse: Purse | None = None, needs_price: str | None = None, **budgets: Any) -> Ledger:
    return Ledger(Budgets(**budgets), PRICES, purse or Purse(), needs_price=needs_price)


def spend(ledger: Ledger, tokens_in: int = 10, tokens_out: int = 10, characters: int = 100) -> Usage:
    admission = ledger.admit(request(characters), "known")
    return ledger.settle(admission, Usage(tokens_in=tokens_in, tokens_out=tokens_out))


def refusal(ledger: Ledger, model: str = "known", characters: int = 100) -> RefusalError:
    with pytest.raises(RefusalError) as caught:
        ledger.admit(request(characters), model)
    return caught.value


def test_exactly_max_steps_calls_pass() -> None:
    ledger = a_ledger(max_steps=4)
    for _ in range(4):
        spend(ledger)
    error = refusal(ledger)
    assert error.code == "budget_exceeded"
    assert str(error) == "over budget: max_steps is 4 and one more model call was asked for"
    assert ledger.end == (EndReason.OVER_BUDGET, str(error))


def test_calls_under_way_are_steps_too() -> None:
    ledger = a_ledger(max_steps=2)
    ledger.admit(request(), "known")
    ledger.admit(request(), "known")
    assert refusal(ledger).code == "budget_exceeded"


def test_a_call_that_was_not_answered_is_no_step() -> None:
    ledger = a_ledger(max_steps=1)
    ledger.release(ledger.admit(request(), "known"))
    spend(ledger)
    refusal(ledger)


def test_what_is_no_step_passes_when_the_steps_are_used_up() -> None:
    ledger = a_ledger(max_steps=0)
    assert isinstance(ledger.admit(request(), "known", is_step=False), Admission)


def test_once_over_nothing_passes_and_the_first_reason_stays() -> None:
    ledger = a_ledger(max_steps=1, max_tool_calls=0)
    spend(ledger)
    refusal(ledger)
    assert not ledger.take_tool_call()
    assert "max_steps" in str(refusal(ledger))


async def test_whoever_waits_for_the_end_is_told() -> None:
    ledger = a_ledger(max_steps=0)
    waiting = asyncio.create_task(ledger.over())
    await asyncio.sleep(0)
    assert not waiting.done()
    refusal(ledger)
    await asyncio.wait_for(waiting, 1)


def test_tokens_used_up_end_the_trial() -> None:
    ledger = a_ledger(max_tokens=40)
    spend(ledger)
    assert ledger.admit(request(50), "known").max_tokens_out == 20
    spend(ledger, characters=50)
    assert "max_tokens is 40, 40 were used" in str(refusal(ledger, characters=10))


def test_a_conversation_that_grows_needs_at_least_its_last_input_again() -> None:
    ledger = a_ledger(max_tokens=100)
    spend(ledger, tokens_in=40, tokens_out=5, characters=200)
    assert ledger.admit(request(200), "known").max_tokens_out == 15
    assert ledger.admit(request(199), "known").max_tokens_out == 55
    spend(ledger, tokens_in=10, tokens_out=0, characters=10)
    spend(ledger, tokens_in=44, tokens_out=0, characters=220)
    assert "the next call needs 45" in str(refusal(ledger, characters=230))


def test_four_calls_of_a_cent_fit_into_four_cents() -> None:
    ledger = a_ledger(max_cost_usd=0.12)
    for _ in range(4):
        assert spend(ledger, characters=10).cost_usd == pytest.approx(0.03)
    assert "max_cost_usd is 0.12 and $0.12 were used" in str(refusal(ledger, characters=1))


@pytest.mark.parametrize("calls", range(1, 30))
def test_a_budget_is_used_up_to_the_last_cent_whatever_the_rounding(calls: int) -> None:
    prices = PriceTable(models={"known": Price(input=1000, output=0)})
    ledger = Ledger(Budgets(max_cost_usd=calls * 0.01), prices, Purse(), needs_price=None)
    for _ in range(calls):
        spend(ledger, tokens_in=10, tokens_out=5)
    refusal(ledger)


def test_what_costs_nothing_is_never_too_dear() -> None:
    prices = PriceTable(models={"known": Price(input=0, output=0)})
    ledger = Ledger(Budgets(max_cost_usd=0), prices, Purse(), needs_price=None)
    for _ in range(3):
        assert spend(ledger).cost_usd == 0
    assert ledger.admit(request(), "known").max_tokens_out is None


def test_the_money_that_is_left_limits_the_reply() -> None:
    ledger = a_ledger(max_cost_usd=0.05)
    spend(ledger, characters=100)
    # $0.02 are left; the ten tokens of the conversation cost at least $0.001.
    assert ledger.admit(request(100), "known").max_tokens_out == 9


def test_an_unknown_price_matters_only_where_money_does() -> None:
    assert a_ledger().admit(request(), "unknown").price is None
    ledger = a_ledger(max_cost_usd=1.0)
    error = refusal(ledger, "unknown")
    assert error.code == "price_unknown"
    assert "'unknown' is not known and the task has a cost budget: name its price in prices.yaml" in str(error)
    assert isinstance(ledger.problem, MeasurementError)
    assert ledger.end is None
    gated = a_ledger(needs_price="the gate has a cost limit")
    assert "the gate has a cost limit" in str(refusal(gated, "unknown"))


def test_the_cost_cap_of_the_run_is_no_fault_of_the_agent() -> None:
    ledger = a_ledger(purse=Purse(0.03))
    spend(ledger)
    assert refusal(ledger).code == "cost_cap_reached"
    assert isinstance(ledger.problem, CostCapError)
    assert "$0.03" in str(ledger.problem)
    assert ledger.end is None


@pytest.mark.parametrize("budgets", [{"max_tokens": 100}, {"max_cost_usd": 1.0}])
def test_a_provider_that_does_not_say_what_was_used_cannot_be_held_to_a_budget(budgets: dict[str, Any]) -> None:
    ledger = a_ledger(**budgets)
    ledger.settle(ledger.admit(request(), "known"), Usage(tokens_in=1))
    assert "does not say what a call used" in str(ledger.problem)
    free = a_ledger()
    free.settle(free.admit(request(), "known"), Usage())
    assert free.problem is None


def test_what_was_put_aside_for_a_call_goes_back_or_is_spent() -> None:
    purse = Purse(1.0)
    ledger = a_ledger(purse=purse)
    spend(ledger, tokens_in=100, tokens_out=0)
    ledger.release(ledger.admit(request(), "known"))
    assert purse.spent == pytest.approx(0.1)
    ledger.abandon(ledger.admit(request(), "known"))
    assert purse.spent == pytest.approx(0.2), "an answer that nobody waited for counts as the mean of the others"
    assert purse.reserve(0.8) is not None


def test_trouble_of_the_provider_is_forgotten_when_a_call_succeeds() -> None:
    ledger = a_ledger()
    ledger.trouble(MeasurementError("down"))
    assert str(ledger.problem) == "down"
    spend(ledger)
    assert ledger.problem is None


def test_tool_calls_beyond_the_budget_are_not_let_through() -> None:
    ledger = a_ledger(max_tool_calls=2)
    assert [ledger.take_tool_call() for _ in range(3)] == [True, True, False]
    assert ledger.end == (EndReason.OVER_BUDGET, "over budget: max_tool_calls is 2 and one more was asked for")


def test_a_reply_that_was_cut_says_which_budget_was_in_force() -> None:
    ledger = a_ledger(max_tokens=40)
    ledger.cut_off(ledger.admit(request(), "known"))
    assert ledger.end is not None
    assert ledger.end[1] == "over budget: max_tokens is 40, and a reply was cut at 40 tokens"
