"""What one trial has used of its budgets, and whether one more call may be sent."""

import asyncio
from dataclasses import dataclass
from typing import NoReturn

from passgate.tasks.budgets.purse import Purse, Reservation
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Usage
from passgate.tasks.providers.exchange import ModelRequest

BUDGET = "budget_exceeded"
FORBIDDEN = "forbidden_call"
"""The codes of refusals that are the agent's doing."""
_ROUNDING = 1e-9
"""Costs are sums of fractions of cents."""
PRICE_REMEDY = "name its price in prices.yaml, beside gates.yaml"


class RefusalError(Exception):
    """A call that is not sent; `code` and the text are what the agent is told."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Admission:
    """A call that may be sent."""

    request: ModelRequest
    price: Price | None
    max_tokens_out: int | None
    """The most tokens that the reply may have; `None` where no budget limits it."""
    least_tokens_in: int
    reservation: Reservation
    is_step: bool


class Ledger:
    """The budgets of one trial. Every call is admitted before it is sent and settled, or released, after it."""

    def __init__(self, budgets: Budgets, prices: PriceTable, purse: Purse, *, needs_price: str | None) -> None:
        """`needs_price` says what makes an unknown price an error, as in `the gate has a cost limit`."""
        self._budgets = budgets
        self._prices = prices
        self._purse = purse
        self._needs_price = "the task has a cost budget" if budgets.max_cost_usd is not None else needs_price
        self._steps = 0
        self._tool_calls = 0
        self._tokens = 0
        self._cost = 0.0
        self._last = (0, 0)
        """Characters and tokens of the newest request whose size is known."""
        self._over = asyncio.Event()
        self._flaw: MeasurementError | None = None
        self._trouble: MeasurementError | None = None
        self.end: tuple[EndReason, str] | None = None
        """Why nothing more is sent, where that is the agent's doing."""

    @property
    def problem(self) -> MeasurementError | None:
        """Why the trial cannot be measured. A provider's trouble is forgotten when a later call succeeds."""
        return self._flaw or self._trouble

    async def over(self) -> None:
        """Wait until the trial must not go on."""
        await self._over.wait()

    def finish(self, reason: EndReason, detail: str) -> None:
        """Nothing more is sent, because of what the agent did; the first reason stays."""
        self.end = self.end or (reason, detail)
        self._over.set()

    def trouble(self, error: MeasurementError) -> None:
        """The provider kept a call from being answered."""
        self._trouble = error

    def admit(self, request: ModelRequest, model: str, *, is_step: bool = True) -> Admission:
        """Let a call pass. Raises the `RefusalError` that the agent is answered with."""
        if self.end is not None:
            reason, detail = self.end
            raise RefusalError(FORBIDDEN if reason is EndReason.FORBIDDEN_CALL else BUDGET, detail)
        if is_step and self._budgets.max_steps is not None and self._steps >= self._budgets.max_steps:
            self._over_budget(f"max_steps is {self._budgets.max_steps} and one more model call was asked for")
        price = self._price_of(model)
        least_in = self._last[1] if request.characters >= self._last[0] else 0
        limit = _least(self._tokens_left(least_in), self._affordable(price, least_in))
        reservation = self._purse.reserve(_cost_in(price, least_in))
        if reservation is None:
            self._fail("cost_cap_reached", CostCapError(f"the run's cost cap of ${self._purse.cap:g} is spent"))
        self._steps += is_step
        return Admission(request, price, limit, least_in, reservation, is_step)

    def settle(self, admission: Admission, usage: Usage) -> Usage:
        """Count a call that was answered; gives its usage with the cost."""
        cost = admission.price.cost(usage) if admission.price else None
        self._purse.settle(admission.reservation, cost)
        self._trouble = None
        self._tokens += (usage.tokens_in or 0) + (usage.tokens_out or 0)
        self._cost += cost or 0.0
        if usage.tokens_in is None or usage.tokens_out is None:
            self._usage_missing()
        else:
            self._last = (admission.request.characters, usage.tokens_in)
        return usage.model_copy(update={"cost_usd": cost})

    def release(self, admission: Admission) -> None:
        """Forget a call that was not answered: it is no step and costs nothing."""
        self._purse.release(admission.reservation)
        self._steps -= admission.is_step

    def abandon(self, admission: Admission) -> None:
        """A call was sent and its answer not waited for: what was put aside for it counts as spent."""
        self._purse.settle(admission.reservation, None)

    def take_tool_call(self) -> bool:
        """Count a tool call that the model asks for; false, and the trial is over, when none is left."""
        most = self._budgets.max_tool_calls
        if most is not None and self._tool_calls >= most:
            self.finish(EndReason.OVER_BUDGET, f"over budget: max_tool_calls is {most} and one more was asked for")
            return False
        self._tool_calls += 1
        return True

    def cut_off(self, admission: Admission) -> None:
        """A reply was cut because it has reached what is left of a budget."""
        self.finish(
            EndReason.OVER_BUDGET,
            f"over budget: {self._tightest()}, and a reply was cut at {admission.max_tokens_out} tokens",
        )

    def _over_budget(self, what: str) -> NoReturn:
        self.finish(EndReason.OVER_BUDGET, f"over budget: {what}")
        raise RefusalError(BUDGET, f"over budget: {what}")

    def _fail(self, code: str, error: MeasurementError) -> NoReturn:
        self._flaw = self._flaw or error
        self._over.set()
        raise RefusalError(code, str(error))

    def _price_of(self, model: str) -> Price | None:
        price = self._prices.price_of(model)
        if price is None and self._needs_price is not None:
            message = f"the price of the model {model!r} is not known and {self._needs_price}: {PRICE_REMEDY}"
            self._fail("price_unknown", MeasurementError(message))
        return price

    def _usage_missing(self) -> None:
        if self._budgets.max_tokens is not None or self._needs_price is not None:
            needing = "max_tokens" if self._budgets.max_tokens is not None else "its cost"
            self._flaw = MeasurementError(f"the provider does not say what a call used, so {needing} cannot be held")

    def _tokens_left(self, least_in: int) -> int | None:
        most = self._budgets.max_tokens
        if most is None:
            return None
        left = most - self._tokens - least_in
        if left < 1:
            self._over_budget(f"max_tokens is {most}, {self._tokens} were used and the next call needs {least_in + 1}")
        return left

    def _affordable(self, price: Price | None, least_in: int) -> int | None:
        """How many tokens of output the cost budget pays for beside the input that is known to come."""
        most = self._budgets.max_cost_usd
        if most is None or price is None:
            return None
        each = _cost_of_one_token_out(price, least_in)
        left = most - self._cost - _cost_in(price, max(1, least_in))
        if left < each - most * _ROUNDING:
            self._over_budget(f"max_cost_usd is {most:g} and ${self._cost:g} were used")
        return max(1, int(left / each)) if each else None

    def _tightest(self) -> str:
        named = {"max_tokens": self._budgets.max_tokens, "max_cost_usd": self._budgets.max_cost_usd}
        return " and ".join(f"{name} is {most:g}" for name, most in named.items() if most is not None)


def _cost_in(price: Price | None, tokens: int) -> float:
    """The least that these input tokens cost: as if all of them came from the provider's cache."""
    if price is None:
        return 0.0
    return price.cost(Usage(tokens_in=tokens, tokens_cached=tokens, tokens_out=0)) or 0.0


def _cost_of_one_token_out(price: Price, tokens_in: int) -> float:
    before, after = (price.cost(Usage(tokens_in=tokens_in, tokens_out=tokens)) or 0.0 for tokens in (0, 1))
    return after - before


def _least(*limits: int | None) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None
