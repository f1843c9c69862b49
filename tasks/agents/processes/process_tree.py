"""A process and all that it starts: they end together, and their keeper reports when none is left."""

import ctypes
import os
import select
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_KILL_SECONDS: Final = 10.0  # A process that waits for a broken disk or network mount cannot be killed
_PAUSE_SECONDS: Final = 0.002


def fork_with_keeper(control: socket.socket) -> None:
    """Fork. This returns in the new process only, which has a session of its own; the calling one becomes its keeper.

    When the other end of `control` is closed, or the new process has ended, the keeper kills every descendant of the
    new process, sends a line with its exit code (negative for a signal, empty if unknown) and ends. Linux only.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    process_id = os.fork()
    if process_id != 0:
        _keep(process_id, control)
    control.close()
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)  # The keeper ended before its end could be noticed


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _keep(process_id: int, control: socket.socket) -> None:
    """Never return."""
    ended: dict[int, int] = {}
    try:
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only names
            if int(name) != control.fileno():
                with suppress(OSError):
                    os.close(int(name))
        _wait_for_end(process_id, control, ended)
        deadline = time.monotonic() + _KILL_SECONDS
        # A process that loses its parent becomes a child of this one, so without children there are no descendants.
        while _reap(ended) and time.monotonic() < deadline:
            for descendant in _descendants():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(descendant, signal.SIGKILL)
            time.sleep(_PAUSE_SECONDS)
        control.sendall(f"{ended.get(process_id, '')}\n".encode())
    finally:
        os._exit(0)


def _wait_for_end(process_id: int, control: socket.socket, ended: dict[int, int]) -> None:
    """Wait until the process has ended or the other end of `control` is closed."""
    notices, notifying = socket.socketpair()  # Readable whenever a child has ended
    notices.setblocking(False)
    notifying.setblocking(False)
    signal.set_wakeup_fd(notifying.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(notices, select.POLLIN)
    while _reap(ended) and process_id not in ended:
        if any(descriptor == control.fileno() for descriptor, _ in poller.poll()):
            return
        notices.recv(4096)


def _reap(ended: dict[int, int]) -> bool:
    """Add the exit codes of the children that have ended, by their process ids. Return whether others are left."""
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0] != 0:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    except ChildProcessError:
        return False
    return True


def _descendants() -> set[int]:
    """Return the ids of all processes that come from this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - hot, and only names
        if name.isdigit():
            with suppress(OSError):
                # The second field is the program's name, which may hold anything.
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return found
