"""Amounts that calls may use: reserved before a call is sent, settled when its reply has ended."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

Found = TypeVar("Found")
_ROUNDING: Final = 1e-9
"""Of the limit: costs are sums of fractions of cents."""


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
        """Whether a call that uses at least this can still fit, once the calls in flight have ended without use."""
        return self.limit is None or self.used + least <= self.limit * (1 + _ROUNDING)

    def has_room(self, amount: float) -> bool:
        """Whether an amount fits beside what is reserved. A call that is alone has room: what it is given is cut."""
        free = self.free
        return free is None or not self.in_flight or amount <= free + (self.limit or 0.0) * _ROUNDING

    def reserve(self, amount: float) -> float:
        """Reserve for one call; gives how much, which is less than asked for where less is free."""
        free = self.free
        taken = amount if free is None else max(0.0, min(amount, free))
        self.reserved += taken
        self.in_flight += 1
        return taken

    def settle(self, reserved: float, used: float) -> None:
        """The call has ended and used this, which may be 0 and may be more than was reserved."""
        self.in_flight -= 1
        self.reserved = self.reserved - reserved if self.in_flight else 0.0
        self.used += used


class AdmissionQueue:
    """Admits calls in the order in which they ask, each as soon as there is room for it."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._change = asyncio.Event()

    async def admitted(self, admit: Callable[[], Found | None]) -> Found:
        """What `admit` gives. While it gives `None` the call waits, and all that ask after it; what it raises ends the
        wait.
        """
        async with self._turn:
            while (found := admit()) is None:
                await self._change.wait()
            return found

    def changed(self) -> None:
        """Something has ended: whoever waits looks again."""
        self._change.set()
        self._change.clear()
