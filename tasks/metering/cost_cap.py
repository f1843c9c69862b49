"""What a whole run may cost."""

from dataclasses import dataclass
from functools import partial

from passgate.tasks.metering.reservations import Account, AdmissionQueue


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money put aside for one call, in US dollars."""

    amount: float
    expected: float
    """What the call is taken to have cost where that never becomes known."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The answer to a call that there is no money left for."""


class CostCap:
    """The money of a run, in US dollars: put aside before a call, settled after it.

    A call is refused when what it costs at least, or the mean of the calls so far, is no longer there. One that may
    cost more than is free waits for calls in flight to end. All of a run's trials share one cap, on one event loop.
    """

    def __init__(self, cap: float | None = None, *, spent: float = 0.0) -> None:
        self.cap = cap
        self.exhausted = cap is not None and spent >= cap
        """Whether a call was refused, or would be: then nothing more is begun."""
        self._account = Account(cap, spent)
        self._queue = AdmissionQueue()
        self._calls = 0
        self._paid = 0.0

    @property
    def spent(self) -> float:
        return self._account.used

    async def reserve(self, at_least: float, at_most: float) -> Reservation | None:
        """Put money aside for a call, once there is room for it; `None` when there is not enough."""
        found: Reservation | Spent = await self._queue.admitted(partial(self.reserve_now, at_least, at_most))
        return None if isinstance(found, Spent) else found

    def reserve_now(self, at_least: float, at_most: float) -> Reservation | Spent | None:
        """As `reserve`; `None` where the call has to wait for others to end."""
        expected = max(at_least, self._paid / self._calls if self._calls else 0.0)
        if self.exhausted or not self._account.can_pay(expected):
            self.exhausted = True
            return Spent()
        amount = max(expected, at_most)
        if not self._account.has_room(amount):
            return None
        return Reservation(self._account.reserve(amount), expected)

    def settle(self, reservation: Reservation, cost: float | None) -> float:
        """A call is over; gives what it is taken to have cost, which without a known cost is what was expected."""
        paid = reservation.expected if cost is None else cost
        self._paid += paid
        self._calls += 1
        self._account.settle(reservation.amount, paid)
        self.exhausted = self.exhausted or (self.cap is not None and self.spent >= self.cap)
        self._queue.changed()
        return paid

    def release(self, reservation: Reservation) -> None:
        """A call was not made after all."""
        self._account.settle(reservation.amount, 0.0)
        self._queue.changed()
