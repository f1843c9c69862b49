"""The journal of a run: one line per finished trial, on disk before the trial counts."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from pydantic import ConfigDict, ValidationError

from passgate.tasks.errors import StorageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder, take_lock
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.trial import MEASURED, FinishedTrial, Trial


class TrialWriter(Protocol):
    """What finished trials are appended to."""

    async def append(self, finished: FinishedTrial) -> None:
        """Write one trial; when this returns it is kept. Raises `StorageError`, on a full disk for one."""


def read_journal(file: Path) -> tuple[list[FinishedTrial], int]:
    """Return the finished trials of one part of a journal, and the length in bytes of its whole lines.

    A torn last line, as a killed run leaves it, is left out of both. Of two lines of one trial the later one
    counts. Raises `StorageError`, also for a broken line in the middle, which nothing of ours leaves behind.
    """
    try:
        content = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise StorageError(f"cannot read the journal {file}: {error}") from error
    trials: dict[tuple[str, int], FinishedTrial] = {}
    whole = 0
    for finished, whole in parsed_lines(content, str(file), FinishedTrial):  # noqa: B007 - its last value is the result
        trials[finished.trial.task_id, finished.trial.trial] = finished
    return list(trials.values()), whole


class LineWithoutTranscript(Frozen):
    """A line of the journal without what takes most of its memory."""

    model_config = ConfigDict(extra="ignore")

    trial: Trial


Line = TypeVar("Line", FinishedTrial, LineWithoutTranscript)


def parsed_lines(content: bytes, name: str, kind: type[Line]) -> Iterator[tuple[Line, int]]:
    """Yield the whole lines of one part of a journal, each with the byte at which it ends. Raises as `read_journal`."""
    lines = BytesIO(content)
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            return
        try:
            yield kind.model_validate_json(line), lines.tell()
        except ValidationError as error:
            if b"\n" not in content[lines.tell() :]:
                return
            raise StorageError(f"{name}:{number}: the journal is damaged in this line; start a new run") from error


def merged(parts: Iterable[Iterable[Trial]]) -> list[Trial]:
    """Return the trials of all parts of a journal. Of one that is in several parts that counts which was measured, and
    among these the later one: a trial that ended in an error is run again, maybe by another process.
    """
    trials: dict[tuple[str, int], Trial] = {}
    for trial in (one for part in parts for one in part):
        key = trial.task_id, trial.trial
        if key not in trials or _weight(trial) >= _weight(trials[key]):
            trials[key] = trial
    return list(trials.values())


def _weight(trial: Trial) -> tuple[bool, datetime]:
    return trial.status in MEASURED, trial.started_at


class FileJournal:
    """Appends finished trials to a file. Use it as a context manager; one process at a time may hold a journal."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1
        self._whole = 0  # Bytes of whole lines; what lies behind them is left of a write that failed
        self._waiting: list[asyncio.Future[None]] = []
        self._syncing: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        try:
            make_private_folder(self._file.parent)
            self._descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            take_lock(self._descriptor)
            self._whole = os.fstat(self._descriptor).st_size
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StorageError(
                f"{self._file} is being written by another process: the run is already running"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot open the journal {self._file}: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def drop_torn_line(self) -> bool:
        """Cut off what a killed run has left of its last line; return whether there was any."""
        _, whole = read_journal(self._file)
        torn = self._file.stat().st_size > whole
        if torn:
            os.ftruncate(self._descriptor, whole)
            self._whole = whole
        return torn

    async def append(self, finished: FinishedTrial) -> None:
        """Write a trial as every `TrialWriter` does; what it keeps is on disk."""
        try:
            self._write(f"{finished.model_dump_json()}\n".encode("utf-8", "surrogatepass"))
            await self._synced()
        except OSError as error:
            raise StorageError(f"cannot write the journal {self._file}: {error}") from error

    def _write(self, line: bytes) -> None:
        """Write a line whole or not at all: a part of one would join the next line and damage it."""
        self._cut_back()
        rest = line
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with suppress(OSError):  # the next append tries again, and does not write where that fails
                self._cut_back()
            raise
        self._whole += len(line)

    def _cut_back(self) -> None:
        if os.fstat(self._descriptor).st_size > self._whole:
            os.ftruncate(self._descriptor, self._whole)

    async def _synced(self) -> None:
        """Wait for an fsync that began after the write; trials that wait together share one."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync_all())
        await done

    async def _sync_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(os.fsync, self._descriptor)
            except OSError as error:
                outcome: OSError | None = error
            else:
                outcome = None
            for done in group:
                if not done.cancelled():
                    done.set_exception(outcome) if outcome else done.set_result(None)
