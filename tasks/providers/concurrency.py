"""How many calls of one provider are under way at once, and whose turn it is."""

import asyncio
import heapq
from dataclasses import dataclass, field
from typing import Final

LEAST: Final = 1
START: Final = 64
MOST: Final = 256


@dataclass(slots=True)
class Window:
    """The number of calls at once: additive increase, multiplicative decrease (Chiu and Jain 1989)."""

    size: float = START
    epoch: int = 0  # How often it was made smaller

    def grow(self, in_flight: int) -> None:
        """Grow after a success: by one for every round trip of a window that is in use."""
        if 2 * in_flight >= self.size:
            self.size = min(MOST, self.size + 1 / self.size)

    def shrink(self, in_flight: int, epoch: int) -> None:
        """Shrink after an overload: to half of what is really under way.

        A call that began in an earlier epoch met an overload that was answered already, so nothing happens.
        """
        if epoch == self.epoch:
            self.size = max(LEAST, min(self.size, in_flight) / 2)
            self.epoch += 1


@dataclass(slots=True)
class ConcurrencyLimiter:
    """Gives calls their turn: the oldest call first, also when it comes back for another attempt."""

    window: Window = field(default_factory=Window)
    in_flight: int = 0
    _waiting: list[tuple[int, int, asyncio.Future[bool]]] = field(default_factory=list)
    _entries: int = 0
    _held: asyncio.TimerHandle | None = None

    async def enter(self, age: int) -> bool:
        """Wait for a turn, the lowest `age` first. Return whether it was granted; then the caller must `leave`."""
        if not self._waiting and self._free:
            self.in_flight += 1
            return True
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._entries += 1
        heapq.heappush(self._waiting, (age, self._entries, turn))
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave()
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def hold(self, seconds: float) -> None:
        """Let nobody in for some seconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._held is not None:
            if self._held.when() >= until:
                return
            self._held.cancel()
        self._held = loop.call_at(until, self._go_on)

    def send_away(self) -> None:
        """Refuse everyone who waits, and stop holding."""
        waiting, self._waiting = self._waiting, []
        for _, _, turn in waiting:
            if not turn.done():
                turn.set_result(False)
        self._go_on()

    @property
    def _free(self) -> bool:
        return self._held is None and self.in_flight < int(self.window.size)

    def _go_on(self) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._free:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self.in_flight += 1
                turn.set_result(True)
