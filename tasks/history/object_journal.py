"""The journal of a run at a URL: what lies in an object store cannot be appended to.

Each finished trial is an object of its own at first, `journal/PART/NAME.jsonl`. Once a writer has a hundred of them it
writes them again as one, `journal/PART.FIRST.LAST.COUNT.jsonl`, and then removes them: to look for new ones takes the
same few requests however many trials the journal holds. What is removed stands somewhere else by then, and nothing is
ever written over.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from passgate.tasks.errors import StorageError
from passgate.tasks.history.journal import line_of
from passgate.tasks.history.storage import Storage
from passgate.tasks.model.trial import FinishedTrial

MAIN: Final = "main"  # What the coordinator's part is called
_FOLDER: Final = "journal"
_SEALED_AT: Final = 100
_TRIES: Final = 10
_MOST_THREADS: Final = 8
_SUFFIX: Final = ".jsonl"


class ObjectJournal:
    """Appends finished trials to a part of a journal. Use it as a context manager."""

    def __init__(self, storage: Storage, part: str) -> None:
        self._storage, self._part = storage, part
        self._folder = f"{_FOLDER}/{part}"
        self._open: dict[str, bytes] = {}  # The lines that are not sealed, by the names of their objects
        self._sealing = asyncio.Lock()
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="journal")

    def __enter__(self) -> Self:
        # What a writer that was killed has left open is sealed with what comes now.
        left = [f"{self._folder}/{name}" for name in self._storage.listing(self._folder).files]
        self._open = dict(self._storage.read_all(left))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(StorageError):  # the trials are kept, as objects of their own
            if kind is None:
                self._seal()

    def drop_torn_line(self) -> bool:
        """As of `Journal`: an object is there whole or not at all."""
        return False

    async def append(self, finished: FinishedTrial) -> None:
        """As of `Journal`."""
        line = line_of(finished).encode("utf-8", "surrogatepass")
        # A name of its own also where a trial is run again by another process; names sort by time.
        name = f"{self._folder}/{time.time_ns()}-{secrets.token_hex(4)}{_SUFFIX}"
        await self._in_thread(self._storage.write, name, line)
        self._open[name] = line
        async with self._sealing:
            if len(self._open) >= _SEALED_AT:
                with suppress(StorageError):  # the next append tries again
                    await self._in_thread(self._seal)

    async def _in_thread(self, work: Callable[..., object], *arguments: object) -> None:
        """Do work that waits while the store does not answer, for minutes at most, in no thread that trials need."""
        await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _seal(self) -> None:
        names = sorted(self._open)
        if not names:
            return
        first, last = (name.rpartition("/")[2].removesuffix(_SUFFIX) for name in (names[0], names[-1]))
        sealed = f"{_FOLDER}/{self._part}.{first}.{last}.{len(names)}{_SUFFIX}"
        self._storage.write(sealed, b"".join(self._open[name] for name in names))
        for name in names:
            del self._open[name]
        self._storage.remove(names)


class ObjectParts:
    """Reads the parts of a journal at a URL."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """As of `JournalParts`. A line may stand in two objects."""
        for _ in range(_TRIES):
            names = self._open_names()
            found = list(self._storage.read_all(names))
            # What is not there any more was sealed meanwhile, and the listing from now on has it.
            if len(found) == len(names):
                yield from found
                sealed = (f"{_FOLDER}/{name}" for name in self._storage.listing(_FOLDER).files)
                yield from self._storage.read_all(sealed)
                return
        raise StorageError("the journal is written faster than it can be read")

    def new_lines(self, seen: dict[str, int]) -> Iterator[bytes]:
        """As of `JournalParts`; `seen` names the objects that were read. A line may come twice."""
        top = self._storage.listing(_FOLDER)
        names = [name for name in self._open_names(top.folders) if name not in seen]
        names += [f"{_FOLDER}/{name}" for name in top.files if f"{_FOLDER}/{name}" not in seen]
        wanted = []
        for name in names:
            if _was_seen_open(name, seen):
                seen[name] = 0
            else:
                wanted.append(name)
        for name, content in self._storage.read_all(wanted):
            seen[name] = len(content)
            yield from content.splitlines()

    def _open_names(self, folders: tuple[str, ...] | None = None) -> list[str]:
        folders = self._storage.listing(_FOLDER).folders if folders is None else folders
        return [
            f"{_FOLDER}/{folder}/{name}"
            for folder in folders
            for name in self._storage.listing(f"{_FOLDER}/{folder}").files
        ]


def _was_seen_open(name: str, seen: dict[str, int]) -> bool:
    """Whether all that a sealed object holds was seen before it was sealed; takes the names of that out of `seen`."""
    words = name.rpartition("/")[2].removesuffix(_SUFFIX).split(".")
    if len(words) != len(("part", "first", "last", "count")):
        return False
    part, first, last, count = words
    begin, end = (f"{_FOLDER}/{part}/{one}{_SUFFIX}" for one in (first, last))
    held = [one for one in seen if one.startswith(f"{_FOLDER}/{part}/") and begin <= one <= end]
    if len(held) != int(count):
        return False
    for one in held:
        del seen[one]
    return True
