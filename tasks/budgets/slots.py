"""How many trials run at once, and which of them begin first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

TrialKey = tuple[str, int]
"""A task's id and the number of the trial."""


class Slots:
    """Lets so many trials run at once.

    With an order they begin in it, also where a later one asks before an earlier one does: whoever gives an order must
    see to it that every trial of it asks.
    """

    def __init__(self, at_once: int, order: Iterable[TrialKey] = ()) -> None:
        self._free = at_once
        self._order = deque(order)
        self._waiting: dict[TrialKey, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def slot(self, key: TrialKey) -> AsyncIterator[None]:
        """Wait for a turn and hold a slot while the context lasts."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[key] = turn
        self._begin()
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(key, turn)
            raise
        try:
            yield
        finally:
            self._free += 1
            self._begin()

    def _leave(self, key: TrialKey, turn: asyncio.Future[None]) -> None:
        """Whoever is cancelled while it waits is expected no longer, and gives back a slot that it has just got."""
        if self._waiting.pop(key, None) is None and not turn.cancelled():
            self._free += 1
        if key in self._order:
            self._order.remove(key)
        self._begin()

    def _begin(self) -> None:
        while self._free and self._waiting:
            key = self._order[0] if self._order else next(iter(self._waiting))
            if key not in self._waiting:
                return
            if self._order:
                self._order.popleft()
            self._waiting.pop(key).set_result(None)
            self._free -= 1
