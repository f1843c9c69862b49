"""How many trials run at once, and which of them begin first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

TrialKey = tuple[str, int]  # A task's id and the number of the trial
WAIT_SECONDS: Final = 10.0


class Scheduler:
    """Lets so many trials run at once.

    With an order they begin in it, also where a later one asks before an earlier one does. With slots free, the
    scheduler waits no longer than `wait_seconds` for an earlier one that has not asked: the caller may hold some of
    them back until others have finished. From then on those begin that have asked, in the order among them.
    """

    def __init__(self, at_once: int, order: Iterable[TrialKey] = (), *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._free = at_once
        self._places = {key: place for place, key in enumerate(order)}
        self._expected = deque(self._places)
        self._late: set[TrialKey] = set()
        self._wait_seconds = wait_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: dict[TrialKey, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def slot(self, key: TrialKey) -> AsyncIterator[None]:
        """Wait for a turn and hold a slot while the context lasts."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[key] = turn
        self._expect_late(key)
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
        """Expect a cancelled trial no longer, and take back a slot that it has just got."""
        if self._waiting.pop(key, None) is None and not turn.cancelled():
            self._free += 1
        if key in self._expected:
            self._expected.remove(key)
        self._begin()

    def _begin(self) -> None:
        while self._free and self._waiting:
            if self._expected and self._expected[0] not in self._waiting:
                self._wait_for(self._expected[0])
                return
            key = self._expected.popleft() if self._expected else next(iter(self._waiting))
            turn = self._waiting.pop(key)
            # A cancelled trial is still here until its own code has run.
            if not turn.cancelled():
                turn.set_result(None)
                self._free -= 1

    def _wait_for(self, key: TrialKey) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._wait_seconds, self._go_on_without, key)

    def _go_on_without(self, key: TrialKey) -> None:
        """Stop to expect a trial that has not asked by now, if all others wait for it."""
        self._timer = None
        if self._expected and self._expected[0] == key and key not in self._waiting:
            self._late.update(late for late in self._expected if late not in self._waiting)
            self._expected = deque(here for here in self._expected if here in self._waiting)
        self._begin()

    def _expect_late(self, key: TrialKey) -> None:
        """Give a trial its place again once it asks."""
        if key in self._late:
            self._late.remove(key)
            self._expected = deque(sorted([*self._expected, key], key=self._places.__getitem__))
