"""Who coordinates a run holds it: by a lock on one machine, by a lease where others can reach the run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from passgate.tasks.errors import StorageError
from passgate.tasks.history.lease import Lease
from passgate.tasks.history.run_store import RunStore


@asynccontextmanager
async def holding(store: RunStore) -> AsyncIterator[Callable[[], None]]:
    """Hold a run at a URL while the context lasts; gives what raises `StorageError` once another process has it.

    Raises `StorageError` where somebody else holds it, and cancels what is in the context when it is lost. A run in a
    folder is held by a lock, which cannot be lost.
    """
    if not store.is_elsewhere:
        with store.locked():
            yield lambda: None
        return
    current, loop, is_lost = asyncio.current_task(), asyncio.get_running_loop(), False

    def lose() -> None:
        nonlocal is_lost
        is_lost = current is not None and current.cancel()

    def lose_in_loop() -> None:
        loop.call_soon_threadsafe(lose)

    lease = store.lease(lose_in_loop)
    await _enter(lease)
    try:
        yield lease.check
    except asyncio.CancelledError:
        if is_lost and current is not None:
            current.uncancel()
            lease.refuse_lost()
        raise
    finally:
        await asyncio.shield(asyncio.to_thread(lease.__exit__, None, None, None))


async def _enter(lease: Lease) -> None:
    """Take a lease in a thread, which goes on where this is cancelled; then the lease goes back."""
    entering = asyncio.ensure_future(asyncio.to_thread(lease.__enter__))
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        with suppress(StorageError):
            await entering
            await asyncio.to_thread(lease.__exit__, None, None, None)
        raise
