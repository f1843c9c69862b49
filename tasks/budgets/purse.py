"""What a whole run may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money put aside for one call."""

    amount: float


class Purse:
    """The money of a run, in US dollars: put aside before a call, settled after it.

    What a call will cost is not known before it, so what is put aside is the larger of what it costs at least and the
    mean of the calls so far. All of a run's trials share one purse, on one event loop.
    """

    def __init__(self, cap: float | None = None, *, spent: float = 0.0) -> None:
        self.cap = cap
        self.spent = spent
        self.exhausted = cap is not None and spent >= cap
        """Whether a call was refused, or would be: then nothing more is begun."""
        self._reserved = 0.0
        self._calls = 0
        self._paid = 0.0

    def reserve(self, at_least: float) -> Reservation | None:
        """Put money aside for a call; `None` when there is not enough."""
        amount = max(at_least, self._paid / self._calls if self._calls else 0.0)
        if self.cap is not None and (self.exhausted or self.spent + self._reserved + amount > self.cap):
            self.exhausted = True
            return None
        self._reserved += amount
        return Reservation(amount)

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """A call is over; without a known cost what was put aside is taken."""
        self._reserved -= reservation.amount
        self.spend(reservation.amount if cost is None else cost)

    def release(self, reservation: Reservation) -> None:
        """A call was not made after all."""
        self._reserved -= reservation.amount

    def spend(self, cost: float) -> None:
        """Take what a call has cost."""
        self.spent += cost
        self._paid += cost
        self._calls += 1
        self.exhausted = self.exhausted or (self.cap is not None and self.spent >= self.cap)
