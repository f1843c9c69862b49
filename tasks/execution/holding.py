"""Who coordinates a run holds it: by the journal's lock on one machine, by a lease where others can reach the run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from passgate.tasks.history.run_store import RunStore


@asynccontextmanager
async def holding(store: RunStore) -> AsyncIterator[Callable[[], None]]:
    """Hold a run at a URL while the context lasts; gives what raises `StorageError` once another process has it.

    Raises `StorageError` where somebody else holds it, and cancels what is in the context when it is lost. A run in a
    folder is held by whoever has its journal open.
    """
    if not store.is_elsewhere:
        yield lambda: None
        return
    current, loop, is_lost = asyncio.current_task(), asyncio.get_running_loop(), False

    def lose() -> None:
        nonlocal is_lost
        is_lost = current is not None and current.cancel()

    def lose_in_loop() -> None:
        loop.call_soon_threadsafe(lose)

    lease = store.lease(lose_in_loop)
    await asyncio.to_thread(lease.__enter__)
    try:
        yield lease.check
    except asyncio.CancelledError:
        if is_lost and current is not None:
            current.uncancel()
            lease.refuse_lost()
        raise
    finally:
        await asyncio.shield(asyncio.to_thread(lease.__exit__, None, None, None))
