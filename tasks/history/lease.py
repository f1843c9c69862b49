"""Who holds a run, or a part of it, where no lock of the kernel reaches: a lease with an expiry, in the run store."""

import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import ValidationError

from passgate.tasks.errors import StorageError
from passgate.tasks.history.storage import Storage
from passgate.tasks.model.base import Frozen

LEASE_SECONDS: Final = 60.0
_DIGITS: Final = 6
_SECONDS_TO_JOIN: Final = 3.0  # A store that does not answer must not keep an interrupted command


class LeaseHeldError(StorageError):
    """Somebody else holds the lease."""


class LeaseHolder(Frozen):
    """Who holds a lease, and how long."""

    host: str
    system: str
    """The machine's boot and the namespace of its process ids: what makes `process` mean anything."""
    process: int
    token: str
    since: datetime
    until: datetime
    """The holder has to renew the lease before."""

    @property
    def described(self) -> str:
        """Who, since when and until when, for a message."""
        times = f"since {self.since:%Y-%m-%d %H:%M:%S} UTC, until {self.until:%H:%M:%S} UTC unless it is renewed"
        return f"process {self.process} on {self.host}, {times}"


class Lease:
    """A lease that is renewed by a thread of its own while the context lasts.

    Each holder has a file of its own, with a number that is one higher than that of the holder before: of several who
    want the next number the store lets one create the file. A holder has lost the lease when there is a higher number;
    one who could not renew it in time, because the store did not answer, still has it if nobody has taken it.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        what: str,
        *,
        seconds: float = LEASE_SECONDS,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """`what` is held, for messages. `lost` is called, in another thread, once the lease is lost."""
        self._storage, self._folder, self._what = storage, folder, what
        self._seconds, self._lost = seconds, lost
        self._number = 0
        self._holder = new_holder(seconds)
        self._is_lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        """Take the lease. Raises `LeaseHeldError` while somebody else holds it, and `StorageError`."""
        before, current = newest_holder(self._storage, self._folder)
        if current is not None and is_alive(current):
            raise LeaseHeldError(f"{self._what} is held by {current.described}")
        self._number, self._holder = before + 1, new_holder(self._seconds)
        # The number of a holder in between may be free again: whoever is slow to ask can get it, but is not the newest.
        if not self._storage.create(_name(self._folder, self._number), _bytes(self._holder)) or not self._is_newest():
            raise LeaseHeldError(f"{self._what} has just been taken by another process")
        if before:
            self._storage.remove([_name(self._folder, before)])
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lease back, so that the next one need not wait for its expiry."""
        self._ended.set()
        self._thread.join(timeout=_SECONDS_TO_JOIN)
        # Whatever goes wrong with that costs time only, and what the context has raised says more.
        with suppress(StorageError):
            if not self._is_lost and self._is_newest():
                self._extend(timedelta(0))

    def check(self) -> None:
        """Renew the lease. Raises `StorageError` where it is lost, also where that cannot be known."""
        if not self._is_lost and self._is_newest():
            self._extend(timedelta(seconds=self._seconds))
        self._is_lost = self._is_lost or not self._is_newest()
        self.refuse_lost()

    def refuse_lost(self) -> None:
        """Raise `StorageError` where it is known that the lease is lost."""
        if self._is_lost:
            raise StorageError(f"{self._what} is not held by this process any more: another one has taken it")

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / 4):
            # Whoever needs the store meanwhile says how long it is waited for.
            with suppress(StorageError):
                if not self._is_newest():
                    self._is_lost = True
                    self._lost()
                    return
                self._extend(timedelta(seconds=self._seconds))

    def _extend(self, time: timedelta) -> None:
        renewed = self._holder.model_copy(update={"until": datetime.now(UTC) + time})
        self._storage.write(_name(self._folder, self._number), _bytes(renewed))

    def _is_newest(self) -> bool:
        number, _ = newest_number(self._storage, self._folder)
        return number == self._number


def newest_number(storage: Storage, folder: str) -> tuple[int, str]:
    """The highest number of a lease with the name of its file; 0 where nobody has ever held it."""
    names = [name for name in storage.listing(folder).files if name.removesuffix(".json").isdigit()]
    return max(((int(name.removesuffix(".json")), f"{folder}/{name}") for name in names), default=(0, ""))


def newest_holder(storage: Storage, folder: str) -> tuple[int, LeaseHolder | None]:
    """Who has held a lease last, with the number; `None` where nobody has."""
    number, name = newest_number(storage, folder)
    content = storage.read(name) if name else None
    try:
        return number, None if content is None else LeaseHolder.model_validate_json(content)
    except ValidationError as error:
        raise StorageError(f"the lease {name} cannot be read: {error}") from error


def living_holder(storage: Storage, folder: str) -> LeaseHolder | None:
    """Who holds a lease now."""
    _, holder = newest_holder(storage, folder)
    return holder if holder is not None and is_alive(holder) else None


def is_alive(holder: LeaseHolder) -> bool:
    """Whether somebody may hold a lease: it has not expired, and its process, where that can be seen, has not ended."""
    return datetime.now(UTC) < holder.until and not _has_ended(holder)


def _has_ended(holder: LeaseHolder) -> bool:
    if not holder.system or (holder.host, holder.system) != (socket.gethostname(), _system()):
        return False
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _is_zombie(holder.process)


def _is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def new_holder(seconds: float) -> LeaseHolder:
    """This process as a holder for so long."""
    now = datetime.now(UTC)
    return LeaseHolder(
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


def _name(folder: str, number: int) -> str:
    return f"{folder}/{number:0{_DIGITS}}.json"


def _bytes(holder: LeaseHolder) -> bytes:
    return holder.model_dump_json().encode()
