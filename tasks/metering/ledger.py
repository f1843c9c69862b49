"""What one trial has used of its budgets, and whether one more call may be sent."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NoReturn

from passgate.tasks.errors import CostCapError, MeasurementError, UnknownPriceError
from passgate.tasks.metering.cost_cap import Account, AdmissionQueue, CostCap, Reservation
from passgate.tasks.metering.estimates import Estimate, Sizes
from passgate.tasks.model.price import NO_CHARGES, PRICES, Charges, Price, price_remedy
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Usage
from passgate.tasks.providers.exchange import ModelRequest

BUDGET = "budget_exceeded"
FORBIDDEN = "forbidden_call"  # The codes of refusals that are the agent's doing
NOTHING_RESERVED: Final = Reservation(0.0, 0.0)
PriceOf = Callable[[str], Price | None]  # The price of a model by its name; `None` where it is unknown
MOST_UNANSWERED: Final = 20
"""Calls in a row without an answer: an agent that sends the same wrong request again and again has to end."""


class RefusalError(Exception):
    """A call that is not sent; the agent receives `code` and the text."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """A call that may be sent, with what is reserved for it."""

    request: ModelRequest
    price: Price | None
    max_tokens_out: int | None  # The most tokens that the reply may have; `None` where no budget limits it
    estimate: Estimate
    tokens: float
    dollars: float  # Of the trial's own budgets: less than the estimate only for a call that is alone
    is_step: bool
    reservation: Reservation = NOTHING_RESERVED  # Of the money of the run, which comes after the trial's own budgets


class Ledger:
    """The budgets of one trial. Every call is admitted before it is sent and settled, or released, after it."""

    def __init__(self, budgets: Budgets, price_of: PriceOf, cost_cap: CostCap, *, needs_price: str | None) -> None:
        """`needs_price` says what makes an unknown price an error, as in `the gate has a cost limit`."""
        self._budgets = budgets
        self._price_of_model = price_of
        self._cost_cap = cost_cap
        self._needs_price = "the task has a cost budget" if budgets.max_cost_usd is not None else needs_price
        self._steps = 0
        self._tool_calls = 0
        self._tokens = Account(budgets.max_tokens)
        self._dollars = Account(budgets.max_cost_usd)
        self._queue = AdmissionQueue()
        self._sizes = Sizes()
        self._unanswered = 0
        self._wait_for_cap = 0
        self.paid = 0.0  # US dollars of the run's money; estimated where nobody waited for a reply
        self._over: asyncio.Future[None] | None = None
        self._is_over = False
        self._flaw: tuple[str, MeasurementError] | None = None
        """Why the trial cannot be measured any more, with the code that the agent receives."""
        self._trouble: MeasurementError | None = None
        self.end: tuple[EndReason, str] | None = None  # Why nothing more is sent, where that is the agent's doing

    @property
    def problem(self) -> MeasurementError | None:
        """Why the trial cannot be measured. A provider's trouble is forgotten when a later call succeeds."""
        return self._flaw[1] if self._flaw else self._trouble

    @property
    def waits_for_cap(self) -> bool:
        """Whether a call waits for other trials to give back money of the run."""
        return self._wait_for_cap > 0

    def over(self) -> asyncio.Future[None]:
        """Done once the trial must not go on."""
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
            if self._is_over:
                self._over.set_result(None)
        return self._over

    def finish(self, reason: EndReason, detail: str) -> None:
        """Nothing more is sent, because of what the agent did; the first reason stays."""
        self.end = self.end or (reason, detail)
        self._stop()

    def trouble(self, error: MeasurementError) -> None:
        """Count a call that the provider kept from being answered."""
        self._trouble = error

    def give_up(self, code: str, error: MeasurementError) -> None:
        """Mark the trial as one that cannot be measured any more, whatever its agent does."""
        self._flaw = self._flaw or (code, error)
        self._stop()

    async def admit(self, request: ModelRequest, model: str, *, is_step: bool = True) -> AdmittedCall:
        """Let a call pass, once there is room for it beside the calls in flight.

        Raises the `RefusalError` that the agent is answered with.
        """
        admitted = await self._queue.admit(partial(self._granted, request, model, is_step))
        try:
            return replace(admitted, reservation=await self._of_the_run(admitted))
        except BaseException:
            self._give_back(admitted)
            raise

    def settle(self, admission: AdmittedCall, usage: Usage, charges: Charges = NO_CHARGES) -> Usage:
        """Count a call that was answered; gives its usage with the cost."""
        cost = admission.price.cost(usage, charges) if admission.price else None
        self.paid += self._cost_cap.settle(admission.reservation, cost)
        self._tokens.settle(admission.tokens, (usage.tokens_in or 0) + (usage.tokens_out or 0))
        self._dollars.settle(admission.dollars, cost or 0.0)
        self._trouble = None
        self._unanswered = 0
        if admission.is_step:
            self._sizes = self._sizes.after(admission.request.characters, usage)
        if usage.tokens_in is None or usage.tokens_out is None:
            self._usage_missing()
        elif admission.price and cost is None and self._needs_price is not None:
            line = admission.price.missing(charges)
            message = f"the provider charges for more than tokens and {self._needs_price}: add to {PRICES}: {line}"
            self.give_up("price_unknown", UnknownPriceError(message, admission.request.model))
        self._queue.notify()
        return usage.model_copy(update={"cost_usd": cost})

    def release(self, admission: AdmittedCall) -> None:
        """Forget a call that was not answered: it is no step and costs nothing."""
        self._cost_cap.release(admission.reservation)
        self._give_back(admission)

    def abandon(self, admission: AdmittedCall) -> None:
        """Count a call that was sent without waiting for the answer: what was reserved for it counts as used."""
        self.paid += self._cost_cap.settle(admission.reservation, None)
        self._tokens.settle(admission.tokens, admission.tokens)
        self._dollars.settle(admission.dollars, admission.dollars)
        self._queue.notify()

    def unanswered(self, why: str | MeasurementError) -> None:
        """Count a call without an answer, which is not the agent's fault. Too many in a row end the trial."""
        self._unanswered += 1
        if isinstance(why, MeasurementError):
            self._trouble = why
        if self._unanswered < MOST_UNANSWERED:
            return
        if isinstance(why, MeasurementError):
            self.give_up("provider_unavailable", why)
        else:
            count = f"{MOST_UNANSWERED} calls in a row got no reply"
            self.finish(EndReason.OVER_BUDGET, f"over budget: {count}, the last one: {why}")

    def take_tool_call(self) -> bool:
        """Count a tool call that the model asks for; false, and the trial is over, when none is left."""
        most = self._budgets.max_tool_calls
        if most is not None and self._tool_calls >= most:
            self.finish(EndReason.OVER_BUDGET, f"over budget: max_tool_calls is {most} and the agent wanted one more")
            return False
        self._tool_calls += 1
        return True

    def cut_off(self, admission: AdmittedCall) -> None:
        """Count a reply that was cut because it reached the rest of a budget."""
        budgets = {"max_tokens": self._budgets.max_tokens, "max_cost_usd": self._budgets.max_cost_usd}
        limits = " and ".join(f"{name} is {most:g}" for name, most in budgets.items() if most is not None)
        what = f"over budget: {limits}, and passgate limited a reply to {admission.max_tokens_out} tokens"
        self.finish(EndReason.OVER_BUDGET, what)

    def _granted(self, request: ModelRequest, model: str, is_step: bool) -> AdmittedCall | None:
        """Reserve the trial's own budgets for a call. Return `None` while it has to wait for calls in flight."""
        self._refuse_what_is_over()
        if is_step and self._budgets.max_steps is not None and self._steps >= self._budgets.max_steps:
            self._over_budget(f"max_steps is {self._budgets.max_steps} and the agent wanted one more model call")
        price = self._find_price(model)
        estimate = Estimate.of(request.characters, request.max_tokens_out, self._sizes)
        self._refuse_what_cannot_fit(price, estimate)
        cost = estimate.cost(price)
        if not (self._tokens.has_room(estimate.tokens) and self._dollars.has_room(cost)):
            return None
        limit = self._longest_reply(price, estimate)
        self._steps += is_step
        tokens, dollars = self._tokens.reserve(estimate.tokens), self._dollars.reserve(cost)
        return AdmittedCall(request, price, limit, estimate, tokens, dollars, is_step)

    def _refuse_what_is_over(self) -> None:
        if self.end is not None:
            reason, detail = self.end
            raise RefusalError(FORBIDDEN if reason is EndReason.FORBIDDEN_CALL else BUDGET, detail)
        if self._flaw is not None:
            code, error = self._flaw
            raise RefusalError(code, str(error))

    def _refuse_what_cannot_fit(self, price: Price | None, estimate: Estimate) -> None:
        """Refuse by what is used: what is reserved for calls in flight may be given back."""
        most, used, needed = self._budgets.max_tokens, int(self._tokens.used), estimate.least_in + 1
        if most is not None and used + needed > most:
            self._over_budget(f"max_tokens is {most}, the trial used {used} and the next call needs {needed}")
        dollars = self._budgets.max_cost_usd
        if dollars is None or price is None:
            return
        least = _cost_in(price, max(1, estimate.least_in)) + _cost_of_one_token_out(price, estimate.least_in)
        if not self._dollars.can_pay(least):
            self._over_budget(f"max_cost_usd is {dollars:g} and the trial used ${self._dollars.used:g}")

    async def _of_the_run(self, admission: AdmittedCall) -> Reservation:
        estimate, price = admission.estimate, admission.price
        self._wait_for_cap += 1
        try:
            reservation = await self._cost_cap.reserve(estimate.least_cost(price), estimate.cost(price))
        finally:
            self._wait_for_cap -= 1
        if reservation is None:
            error = CostCapError(f"the run's cost cap of ${self._cost_cap.cap:g} is spent")
            self.give_up("cost_cap_reached", error)
            raise RefusalError("cost_cap_reached", str(error))
        return reservation

    def _give_back(self, admission: AdmittedCall) -> None:
        self._tokens.settle(admission.tokens, 0.0)
        self._dollars.settle(admission.dollars, 0.0)
        self._steps -= admission.is_step
        self._queue.notify()

    def _over_budget(self, what: str) -> NoReturn:
        self.finish(EndReason.OVER_BUDGET, f"over budget: {what}")
        raise RefusalError(BUDGET, f"over budget: {what}")

    def _stop(self) -> None:
        self._is_over = True
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
        self._queue.notify()

    def _find_price(self, model: str) -> Price | None:
        price = self._price_of_model(model)
        if price is None and self._needs_price is not None:
            message = f"the price of the model {model!r} is unknown and {self._needs_price}: {price_remedy(model)}"
            self.give_up("price_unknown", UnknownPriceError(message, model))
            raise RefusalError("price_unknown", message)
        return price

    def _usage_missing(self) -> None:
        if self._budgets.max_tokens is not None or self._needs_price is not None:
            needing = "max_tokens" if self._budgets.max_tokens is not None else "its cost"
            message = f"the provider does not report what a call used, so passgate cannot enforce {needing}"
            self.give_up("usage_unknown", MeasurementError(message))

    def _longest_reply(self, price: Price | None, estimate: Estimate) -> int | None:
        """Return how many tokens of output the budgets have room for beside the input that is known to come."""
        limits = []
        if self._tokens.free is not None:
            limits.append(int(self._tokens.free) - estimate.least_in)
        each = _cost_of_one_token_out(price, estimate.least_in) if price else 0.0
        if self._dollars.free is not None and price is not None and each:
            limits.append(int((self._dollars.free - _cost_in(price, max(1, estimate.least_in))) / each))
        # No provider takes a limit of 0.
        return max(1, min(limits)) if limits else None


def _cost_in(price: Price, tokens: int) -> float:
    """Return the least cost of these input tokens: as if all of them came from the provider's cache."""
    return price.cost(Usage(tokens_in=tokens, tokens_cached=tokens, tokens_out=0)) or 0.0


def _cost_of_one_token_out(price: Price, tokens_in: int) -> float:
    before, after = (price.cost(Usage(tokens_in=tokens_in, tokens_out=tokens)) or 0.0 for tokens in (0, 1))
    return after - before
