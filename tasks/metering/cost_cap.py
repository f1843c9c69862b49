"""What calls may use: reserved before a call is sent, settled when its reply has ended. What a run, and its LLM judge,
may cost.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from passgate.tasks.errors import CostCapError
from passgate.tasks.metering.estimates import Estimate, Sizes
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.price import Price

Found = TypeVar("Found")
_ROUNDING: Final = 1e-9  # Of the limit: costs are sums of fractions of cents


class Account:
    """An amount of tokens or of US dollars: its limit, what is used, and what is reserved for calls in flight."""

    def __init__(self, limit: float | None, used: float = 0.0) -> None:
        """Without a limit there is always room."""
        self.limit = limit
        self.used = used
        self.reserved = 0.0
        self.in_flight = 0

    @property
    def free(self) -> float | None:
        """What is neither used nor reserved; `None` without a limit."""
        return None if self.limit is None else self.limit - self.used - self.reserved

    def can_pay(self, least: float) -> bool:
        """Return whether a call that uses at least this still fits, once calls in flight have ended without use."""
        return self.limit is None or self.used + least <= self.limit * (1 + _ROUNDING)

    def has_room(self, amount: float) -> bool:
        """Return whether an amount fits beside what is reserved. A single call has room: its reservation is cut."""
        free = self.free
        return free is None or not self.in_flight or amount <= free + (self.limit or 0.0) * _ROUNDING

    def reserve(self, amount: float) -> float:
        """Reserve for one call. Return how much, which is less than asked for if less is free."""
        free = self.free
        taken = amount if free is None else max(0.0, min(amount, free))
        self.reserved += taken
        self.in_flight += 1
        return taken

    def settle(self, reserved: float, used: float) -> None:
        """End a call that used this, which may be 0 and may be more than was reserved."""
        self.in_flight -= 1
        self.reserved = self.reserved - reserved if self.in_flight else 0.0
        self.used += used


class AdmissionQueue:
    """Admits calls in the order in which they ask, each as soon as there is room for it."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._change = asyncio.Event()

    async def admit(self, admit: Callable[[], Found | None]) -> Found:
        """Return what `admit` returns. While that is `None` the call waits, and all that ask after it; what it raises
        ends the wait.
        """
        async with self._turn:
            while (found := admit()) is None:
                await self._change.wait()
            return found

    def notify(self) -> None:
        """Let waiting calls look again, because something has ended."""
        self._change.set()
        self._change.clear()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money put aside for one call, in US dollars."""

    amount: float
    expected: float  # What the call is taken to have cost where that never becomes known


@dataclass(frozen=True, slots=True)
class Spent:
    """The answer to a call that there is no money left for."""


class CostCap:
    """The money of a run, in US dollars: put aside before a call, settled after it.

    A call is refused when what it costs at least, or the mean of the calls so far, is no longer there. One that may
    cost more than is free waits for calls in flight to end. All of a run's trials share one cap, on one event loop.
    """

    def __init__(
        self, cap: float | None = None, *, share: float | None = None, spent: float = 0.0, call_cost: float = 0.0
    ) -> None:
        """`share` is what of the cap is for the trials of this process, where others spend the rest; `call_cost` what
        their calls have cost so far, on average.
        """
        self.cap = cap
        limit = cap if share is None else share
        self.exhausted = limit is not None and spent >= limit
        """Whether a call was refused, or would be: then nothing more is begun."""
        self._account = Account(limit, spent)
        self._queue = AdmissionQueue()
        # Until calls of this process have ended, it takes them to be like those of the others.
        self._calls = 1 if call_cost else 0
        self._paid = call_cost

    @property
    def spent(self) -> float:
        return self._account.used

    @property
    def call_cost(self) -> float:
        """The mean of the calls so far."""
        return self._paid / self._calls if self._calls else 0.0

    async def reserve(self, at_least: float, at_most: float) -> Reservation | None:
        """Put money aside for a call, once there is room for it. Return `None` if there is not enough."""
        found: Reservation | Spent = await self._queue.admit(partial(self.reserve_now, at_least, at_most))
        return None if isinstance(found, Spent) else found

    def reserve_now(self, at_least: float, at_most: float) -> Reservation | Spent | None:
        """Do as `reserve`, but return `None` if the call has to wait for others to end."""
        expected = max(at_least, self.call_cost)
        if self.exhausted or not self._account.can_pay(expected):
            self.exhausted = True
            return Spent()
        amount = max(expected, at_most)
        if not self._account.has_room(amount):
            return None
        return Reservation(self._account.reserve(amount), expected)

    def settle(self, reservation: Reservation, cost: float | None) -> float:
        """End a call. Return its cost; without a known cost, what was expected."""
        paid = reservation.expected if cost is None else cost
        self._paid += paid
        self._calls += 1
        self._account.settle(reservation.amount, paid)
        limit = self._account.limit
        self.exhausted = self.exhausted or (limit is not None and self.spent >= limit)
        self._queue.notify()
        return paid

    def release(self, reservation: Reservation) -> None:
        """Cancel a call that was not made."""
        self._account.settle(reservation.amount, 0.0)
        self._queue.notify()


class ChargedLlmJudge:
    """Another judge, with what its replies have cost, those that are of no use too."""

    def __init__(self, judge: LlmJudge, price: Price | None = None, cost_cap: CostCap | None = None) -> None:
        """With a cost cap every reply is paid for from it, by the price; without one, a reply costs what it says."""
        self._judge = judge
        self._price = price
        self._cost_cap = cost_cap
        self._sizes = Sizes()
        self.paid = 0.0  # US dollars

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def votes(self) -> int:
        return self._judge.votes

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """Ask the judge and pay for it. Raises `CostCapError` if there is no money left."""
        reply = await (self._judge.reply(request) if self._cost_cap is None else self._bought(request, self._cost_cap))
        self.paid += reply.usage.cost_usd or 0.0
        return reply

    async def _bought(self, request: JudgeRequest, cost_cap: CostCap) -> JudgeReply:
        characters = sum(len(message.content) for message in request.messages)
        estimate = Estimate.of(characters, None, self._sizes)
        reservation = await cost_cap.reserve(estimate.least_cost(self._price), estimate.cost(self._price))
        if reservation is None:
            raise CostCapError(f"the run's cost cap of ${cost_cap.cap:g} is spent")
        try:
            reply = await self._judge.reply(request)
        except BaseException:
            cost_cap.release(reservation)
            raise
        cost = self._price.cost(reply.usage) if self._price else None
        cost_cap.settle(reservation, cost)
        self._sizes = self._sizes.after(characters, reply.usage)
        return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost_usd": cost})})

    async def close(self) -> None:
        """Do nothing: the owner of the other judge closes it."""
