"""Whatever the order in which calls are admitted, answered and given up, budgets hold."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.ledger import AdmittedCall, Ledger, RefusalError
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ModelRequest

PRICE = Price(input=1000, output=4000)
unpriced = PriceTable().price
price_of_all = PriceTable(models={"*": PRICE}).price


@dataclass(frozen=True)
class Planned:
    """A call and what becomes of it."""

    characters: int
    limit: int | None
    tokens_in: int
    tokens_out: int
    end: str


@dataclass
class Flight:
    """The calls of a trial: those that wait for admission, those that are in flight, and what they used."""

    ledger: Ledger
    waiting: list[tuple[Planned, asyncio.Task[AdmittedCall]]] = field(default_factory=list)
    sent: list[tuple[Planned, AdmittedCall]] = field(default_factory=list)
    tokens: int = 0
    dollars: float = 0.0
    unknowable_tokens: int = 0
    unknowable_dollars: float = 0.0
    charged: float = 0.0

    async def ask(self, call: Planned) -> None:
        request = ModelRequest("m", False, call.limit, (), (), False, call.characters)
        self.waiting.append((call, asyncio.create_task(self.ledger.admit(request, "m"))))
        await self.look()

    async def look(self) -> None:
        for _ in range(3 * len(self.waiting) + 3):
            await asyncio.sleep(0)
        for call, task in [one for one in self.waiting if one[1].done()]:
            self.waiting.remove((call, task))
            if task.exception() is None:
                self._admitted(call, task.result())
            else:
                assert isinstance(task.exception(), RefusalError)

    def _admitted(self, call: Planned, admission: AdmittedCall) -> None:
        dollars = admission.estimate.cost(admission.price)
        whole = (admission.estimate.tokens, dollars, dollars)
        reserved = (admission.tokens, admission.dollars, admission.reservation.amount)
        is_whole = all(got >= wanted * (1 - 1e-6) for got, wanted in zip(reserved, whole, strict=True))
        assert is_whole or not self.sent, "only a call that is alone goes out with less than it may use"
        self.sent.append((call, admission))

    async def end(self, position: int) -> None:
        call, admission = self.sent.pop(position % len(self.sent))
        if call.end == "release":
            self.ledger.release(admission)
        elif call.end == "abandon":
            self.ledger.abandon(admission)
        else:
            self._settle(call, admission)
        await self.look()

    def _settle(self, call: Planned, admission: AdmittedCall) -> None:
        # A provider holds to the limit that the request sets, which is the lower of the agent's and the meter's.
        limits = [call.tokens_out, *([] if call.limit is None else [call.limit, admission.max_tokens_out or 10**9])]
        usage = Usage(tokens_in=call.tokens_in, tokens_out=min(limits))
        cost = self.ledger.settle(admission, usage).cost_usd or 0.0
        used = call.tokens_in + min(limits)
        self.tokens += used
        self.dollars += cost
        self.unknowable_tokens += max(0, used - int(admission.tokens))
        self.unknowable_dollars += max(0.0, cost - admission.dollars)
        self.charged += max(0.0, cost - admission.reservation.amount)


calls = st.builds(
    Planned,
    characters=st.integers(0, 3000),
    limit=st.none() | st.integers(1, 500),
    tokens_in=st.integers(0, 1500),
    tokens_out=st.integers(0, 2000),
    end=st.sampled_from(["settle", "settle", "settle", "release", "abandon"]),
)
steps = st.lists(st.one_of(calls, st.integers(0, 50)), max_size=40)


def flown(plan: list[Planned | int], ledger: Ledger) -> Flight:
    async def fly() -> Flight:
        flight = Flight(ledger)
        for step in plan:
            if isinstance(step, Planned):
                await flight.ask(step)
            elif flight.sent:
                await flight.end(step)
        while flight.sent:
            await flight.end(0)
        assert not flight.waiting, "whoever waits is admitted or refused once no call is in flight"
        return flight

    return asyncio.run(fly())


@given(steps, st.integers(1, 5000))
def test_no_order_of_calls_uses_more_tokens_than_could_be_known(plan: list[Planned | int], most: int) -> None:
    flight = flown(plan, Ledger(Budgets(max_tokens=most), unpriced, CostCap(), needs_price=None))
    assert flight.tokens <= most + flight.unknowable_tokens


@given(steps, st.floats(0.001, 20))
def test_no_order_of_calls_costs_more_than_could_be_known(plan: list[Planned | int], most: float) -> None:
    flight = flown(plan, Ledger(Budgets(max_cost_usd=most), price_of_all, CostCap(), needs_price=None))
    assert flight.dollars <= most + flight.unknowable_dollars + 1e-6


@given(steps, st.floats(0.001, 20))
def test_no_order_of_calls_costs_the_run_more_than_could_be_known(plan: list[Planned | int], cap: float) -> None:
    flight = flown(plan, Ledger(Budgets(), price_of_all, CostCap(cap), needs_price="the run has a cost cap"))
    assert flight.dollars <= cap + flight.charged + 1e-6
