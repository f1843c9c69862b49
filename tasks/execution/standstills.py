"""Whether this process stood still: somebody stopped it, the machine slept, or its memory was swapped out."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Transcript

_TICK_SECONDS: Final = 0.5
_NOTICED_SECONDS: Final = 5.0  # A busy machine keeps a process waiting for less


class Standstills:
    """Looks at the clock twice a second, and knows when it could not."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, float]] = []

    async def notice(self) -> None:
        """Look at the clock until cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(_TICK_SECONDS)
            self._add(time.monotonic() - before - _TICK_SECONDS)

    def _add(self, seconds: float) -> None:
        if seconds >= _NOTICED_SECONDS:
            self._ends.append((time.monotonic(), seconds))

    async def refuse_time_out(self, transcript: Transcript, started: float) -> None:
        """Raise `MeasurementError` for an agent that timed out while this process stood still: nobody can say whether
        it would have ended in time. `started` is when it began, by the monotonic clock.
        """
        if transcript.end is not EndReason.TIMED_OUT:
            return
        # After a standstill the time limits are over before the clock has been looked at.
        await asyncio.sleep(2 * _TICK_SECONDS)
        seconds = sum(length for end, length in self._ends if end > started)
        if seconds:
            raise MeasurementError(
                f"passgate stood still for {seconds:.0f} s while the agent ran, so its time limit says nothing: "
                "something stopped the process, or the machine slept or swapped memory",
                transient=True,
            )


@asynccontextmanager
async def noticed_standstills() -> AsyncIterator[Standstills]:
    """Notice standstills of this process while the context lasts."""
    standstills = Standstills()
    noticing = asyncio.create_task(standstills.notice())
    try:
        yield standstills
    finally:
        noticing.cancel()
