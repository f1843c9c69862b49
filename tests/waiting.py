"""The one way in which tests wait: for what holds at last, with a limit that no busy machine reaches."""

import asyncio
import time
from collections.abc import Callable

LIMIT = 240.0
"""Seconds. Who reaches it waits in vain."""
_SECONDS_BETWEEN = 0.02


def wait_until(holds: Callable[[], object], seconds: float = LIMIT) -> None:
    """Wait until something holds. Raise `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for did not come about")
        time.sleep(_SECONDS_BETWEEN)


async def until(holds: Callable[[], object], seconds: float = LIMIT) -> None:
    """Wait until something holds, while the event loop goes on. Raise `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(_SECONDS_BETWEEN)
