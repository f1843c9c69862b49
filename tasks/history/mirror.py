"""The mirror of a run's folder at a URL: changed files go there, and the next machine fetches them.

A file at the URL is a copy of the file of the same name. Only the journal, which grows, is kept in pieces: the object
`journal/OFFSET.jsonl` holds its whole lines from that byte on. `holder.json` says which process holds the run, and
until when: no lock of the kernel reaches there.
"""

import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from passgate.tasks.errors import StorageError
from passgate.tasks.files.removal import remove_tree
from passgate.tasks.history.storage import CHANGE, LOCATION, PLAN, LocalStorage, RunTakenError, Storage, storage_at
from passgate.tasks.model.base import Frozen

_NOT_MIRRORED: Final = frozenset({"files", "base"})
"""Folders with files of the run's tasks. A snapshot or git can bring them back."""
HELD_SECONDS: Final = 60.0
_HOLDER: Final = "holder.json"  # At the URL: who coordinates the run. In the folder: who did so here
_JOURNAL: Final = "journal.jsonl"
_PIECE: Final = re.compile(r"(?:(?P<folder>.*)/)?journal/(?:.*/)?(?P<offset>[^/]*)\.jsonl")


class Holder(Frozen):
    """The process that holds a run."""

    host: str
    system: str  # The machine's boot and the namespace of its process ids: what makes `process` mean anything
    process: int
    token: str
    since: datetime
    until: datetime  # The process has to renew its hold before

    def __str__(self) -> str:
        times = f"since {self.since:%Y-%m-%d %H:%M:%S} UTC, until {self.until:%H:%M:%S} UTC unless it is renewed"
        return f"process {self.process} on {self.host}, {times}"

    @property
    def is_alive(self) -> bool:
        """Whether it may still hold the run: it has time left, and its process has not ended as far as is seen here."""
        if datetime.now(UTC) >= self.until:
            return False
        if not self.system or (self.host, self.system) != (socket.gethostname(), _system()):
            return True
        try:
            os.kill(self.process, 0)
            return Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except ProcessLookupError:
            return False
        except OSError:
            return True


def new_holder(seconds: float) -> Holder:
    """Return this process as the holder of a run for some seconds."""
    now = datetime.now(UTC)
    return Holder(
        host=socket.gethostname(),
        system=_system(),
        process=os.getpid(),
        token=secrets.token_hex(8),
        since=now,
        until=now + timedelta(seconds=seconds),
    )


def _system() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - the link leads to no path
    except OSError:
        return ""  # then nobody can be known to be on the same machine


class Mirror:
    """The folder of a run and its copy at a URL."""

    def __init__(self, folder: Path, url: str) -> None:
        """Open the URL. Raise `UsageError` if this machine has no driver for it."""
        self._folder, self._url = folder, url
        self.storage = storage_at(url)
        self._here = LocalStorage(folder)
        self._token = ""
        self._sent: dict[str, tuple[int, int]] = {}  # Sizes and times of files that are at the URL
        self._pieces: dict[str, int] = {}  # Bytes of journals that are at the URL
        self._is_listed = self._is_ended = False
        self._lock = threading.Lock()

    def refuse_held(self) -> Holder | None:
        """Return who has held the run last. Raises `RunTakenError` while another process holds it, `StorageError`."""
        holder = self._holder(self.storage)
        if holder is not None and holder.is_alive and holder.token != self._token:
            raise RunTakenError(f"the run {self._url} is already running (held by {holder})")
        return holder

    def take(self) -> None:
        """Hold the run. Raises `RunTakenError` if another process holds it or has run it since; `StorageError`."""
        before, known = self.refuse_held(), self._holder(self._here)
        if before is not None and (known is None or known.token != before.token):
            raise RunTakenError(f"another process has continued the run since: name it by its URL {self._url}")
        holder = new_holder(HELD_SECONDS)
        self._write_holder(holder)
        self._here.write(_HOLDER, holder.model_dump_json().encode())
        self._token = holder.token

    def push(self) -> None:
        """Hold the run for another minute, and copy what has changed. Raises `RunTakenError`, `StorageError`."""
        with self._lock:
            if self._token:
                self._renew(HELD_SECONDS)
            else:
                self.take()
            self._copy()

    def copy(self) -> None:
        """Copy what has changed, unless another process has changed the run at the URL since. Raises `StorageError`."""
        with self._lock:
            if _token(self.storage.read(_HOLDER)) == _token(self._here.read(_HOLDER)):
                self._copy()

    def release(self) -> None:
        """Hold the run no longer. Raises `StorageError`."""
        with self._lock:
            if self._token:
                self._renew(0.0)

    def end(self) -> None:
        """Write nothing more. A thread that still waits for the URL must not take the run from its next holder."""
        self._is_ended = True

    @property
    def missing(self) -> list[str]:
        """The names of the files of which something is not at the URL."""
        return [
            name
            for name, (size, time) in self._files()
            if (self._pieces.get(name) != size if _is_journal(name) else self._sent.get(name) != (size, time))
        ]

    def _copy(self) -> None:
        if not self._is_listed:
            self._list()
        for name, state in self._files():
            if _is_journal(name):
                self._copy_journal(name)
            elif self._sent.get(name) != state:
                self.storage.write(name, (self._folder / name).read_bytes())
                self._sent[name] = state

    def _renew(self, seconds: float) -> None:
        holder = self._holder(self.storage)
        if holder is not None and holder.token != self._token:
            raise RunTakenError(f"the run {self._url} is not held by this process any more: another one has taken it")
        self._write_holder(new_holder(seconds).model_copy(update={"token": self._token}))

    def _write_holder(self, holder: Holder) -> None:
        if self._is_ended:
            raise StorageError(f"this process does not hold the run {self._url} any more")
        self.storage.write(_HOLDER, holder.model_dump_json().encode())

    def _holder(self, storage: Storage) -> Holder | None:
        content = storage.read(_HOLDER)
        try:
            return None if content is None else Holder.model_validate_json(content)
        except ValidationError as error:
            raise StorageError(f"{self._url}/{_HOLDER} is damaged: {error}") from error

    def _files(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Return the files that belong at the URL, with their sizes and times."""
        for folder, inner, names in os.walk(self._folder):
            within = Path(folder).relative_to(self._folder)
            if within in {Path(), Path(CHANGE)}:
                inner[:] = [name for name in inner if name not in _NOT_MIRRORED]
            for name in sorted(names):
                # A file whose name begins with a dot is being written.
                if name.startswith(".") or name in {LOCATION, _HOLDER}:
                    continue
                with suppress(FileNotFoundError):
                    state = Path(folder, name).stat()
                    yield (within / name).as_posix(), (state.st_size, state.st_mtime_ns)

    def _list(self) -> None:
        """See what an earlier process has copied: pieces of the journal, and snapshots, named after their digests."""
        sizes, states = self.storage.sizes(), dict(self._files())
        for name, size in sizes.items():
            piece = _PIECE.fullmatch(name)
            if piece and piece["offset"].isdigit():
                journal = _journal(piece)
                self._pieces[journal] = max(self._pieces.get(journal, 0), int(piece["offset"]) + size)
            elif "snapshot/" in name and name in states and states[name][0] == size:
                self._sent[name] = states[name]
        self._is_listed = True

    def _copy_journal(self, name: str) -> None:
        start = self._pieces.get(name, 0)
        with (self._folder / name).open("rb") as stream:
            stream.seek(start)
            whole, newline, _ = stream.read().rpartition(b"\n")
        if newline:
            folder = PurePosixPath(name).parent / "journal"
            self.storage.write(f"{folder.as_posix()}/{start:016}.jsonl".removeprefix("./"), whole + newline)
            self._pieces[name] = start + len(whole) + 1


def _is_journal(name: str) -> bool:
    return PurePosixPath(name).name == _JOURNAL


def fetch(url: str, folder: Path) -> None:
    """Copy a run from its URL, if another process has changed it there. Raises `StorageError`, `UsageError`."""
    storage, here = storage_at(url), LocalStorage(folder)
    try:
        holder = storage.read(_HOLDER)
    except StorageError:
        if here.read(PLAN) is None:
            raise
        return
    if here.read(PLAN) is not None and _token(here.read(_HOLDER)) == _token(holder):
        return
    new = LocalStorage(folder.with_name(f".{folder.name}.{os.getpid()}"))
    new.clear()
    try:
        for name in sorted(storage.sizes()):
            path, piece = PurePosixPath(name), _PIECE.fullmatch(name)
            if path.is_absolute() or ".." in path.parts:
                raise StorageError(f"the run store has a file {name!r} outside of the run's folder")
            content = storage.read(name) or b""
            if piece is None:
                new.write(name, content)
                continue
            journal = _journal(piece)
            if not (new.folder / journal).exists():
                new.write(journal, b"")
            with (new.folder / journal).open("ab") as stream:
                stream.write(content)
        new.write(LOCATION, f"{url}\n".encode())
        remove_tree(folder)
        new.folder.rename(folder)
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error}") from error
    finally:
        new.clear()


def _token(holder: bytes | None) -> str:
    with suppress(ValidationError):
        return Holder.model_validate_json(holder).token if holder else ""
    return ""


def _journal(piece: re.Match[str]) -> str:
    """Return the name of the journal that a piece is of."""
    return PurePosixPath(piece["folder"] or "", _JOURNAL).as_posix()
