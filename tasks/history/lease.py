"""Say which process holds a run or a history where no lock of the kernel reaches, and until when."""

import os
import secrets
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from passgate.tasks.model.base import Frozen


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
    """Return this process as a holder for so long."""
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
