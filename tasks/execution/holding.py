"""Hold a run while this process coordinates it, and keep its mirror up to date."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from passgate.tasks.errors import StorageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import RunTakenError, UnreachableError, ask
from passgate.tasks.reports.figures import listed
from passgate.tasks.reports.messages import warn
from passgate.tasks.sandboxes.processes import in_daemon_thread

if TYPE_CHECKING:
    from passgate.tasks.history.mirror import Mirror

MIRROR_SECONDS: Final = 10.0
_SECONDS_TO_ANSWER_INTERRUPTED: Final = 3.0


@asynccontextmanager
async def holding(store: RunStore) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold a run while the context lasts, and copy what changes in its folder to its URL, if it has one.

    Yields a check that raises `StorageError` once another process holds the run. Raises `StorageError` if another
    process holds it, and cancels what is in the context when one takes it. A URL that does not answer is a warning, and
    so are files that are not there at the end.
    """
    with store.lock():
        mirror = store.mirror()
        if mirror is None:
            yield _do_nothing
            return
        try:
            await _answer(mirror.take)
            await _answer(mirror.push)
        except UnreachableError as error:
            warn(f"{error}. The trials run; their files go to {store.url} as soon as it answers")
        async with _CurrentMirror(mirror, store) as current:
            yield current.check


async def _do_nothing() -> None:
    """Do nothing, because a lock cannot be lost."""


class _CurrentMirror:
    """Pushes a mirror in a thread while the context lasts, and a last time at its end."""

    def __init__(self, mirror: "Mirror", store: RunStore) -> None:
        self._mirror, self._store = mirror, store
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._ended = threading.Event()
        self._taken: RunTakenError | None = None

    async def check(self) -> None:
        """Raise `StorageError` if another process holds the run. A URL that does not answer says nothing."""
        try:
            await _answer(self._mirror.push)
        except RunTakenError:
            raise
        except StorageError:
            return

    async def __aenter__(self) -> Self:
        threading.Thread(target=self._push, name="mirror", daemon=True).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._taken is None:
            seconds = None if kind is None else _SECONDS_TO_ANSWER_INTERRUPTED
            try:
                await asyncio.shield(self._end(seconds))
            finally:
                self._mirror.end()
        elif kind is asyncio.CancelledError and self._task is not None:
            self._task.uncancel()
            raise self._taken

    def _push(self) -> None:
        while not self._ended.wait(MIRROR_SECONDS):
            try:
                self._mirror.push()
            except RunTakenError as error:
                self._loop.call_soon_threadsafe(self._stop, error)
                return
            except StorageError:
                continue  # What is missing at the end is said then.

    def _stop(self, error: RunTakenError) -> None:
        if self._task is not None and self._task.cancel():
            self._taken = error

    async def _end(self, seconds: float | None) -> None:
        try:
            await _answer(self._mirror.push, seconds)
            await _answer(self._mirror.release, seconds)
        except StorageError as error:
            missing = sorted(self._mirror.missing, key=lambda name: (name != "verdict.json", name))
            if missing:
                where = f"{self._store.url}: {listed(missing, 3)}; they are in {self._store.here}"
                warn(f"{error}. Not copied to {where}")


async def _answer(work: Callable[[], None], seconds: float | None = None) -> None:
    """Do work with a store that may not answer, as `ask` does, without holding up the event loop."""
    await in_daemon_thread(partial(ask, work, seconds))
