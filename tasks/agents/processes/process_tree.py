"""A process and all that it starts: they end together, and whoever wanted them is told when none is left."""

import ctypes
import os
import select
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from passgate.tasks.agents.processes.messages import ProcessEnded

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_KILL_SECONDS: Final = 10.0
"""A process that waits for a broken disk or network mount cannot be killed, and nobody waits for it for ever."""
_PAUSE_SECONDS: Final = 0.002


def fork_kept(control: socket.socket) -> None:
    """Fork. This returns in the new process only, which has a session of its own; the calling one becomes its keeper.

    When the other end of `control` is closed, or the new process has ended, the keeper kills whatever comes from the
    new process, sends one `ProcessEnded` and ends. Linux only.
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
        os._exit(1)  # the keeper has ended before its end could be heard of


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _keep(process_id: int, control: socket.socket) -> None:
    """Never returns."""
    try:
        with _notices_of_children(control) as notices:
            status = _wait_for_end(process_id, control, notices)
        status = _kill_descendants().get(process_id, status)
        control.sendall(ProcessEnded(status=status).model_dump_json().encode() + b"\n")
    finally:
        os._exit(0)


def _notices_of_children(control: socket.socket) -> socket.socket:
    """Something to read whenever a child has ended. Every other descriptor but `control` is closed before."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - only names
        if int(name) != control.fileno():
            with suppress(OSError):
                os.close(int(name))
    notices, notifying = socket.socketpair()
    notices.setblocking(False)
    notifying.setblocking(False)
    signal.set_wakeup_fd(notifying.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return notices


def _wait_for_end(process_id: int, control: socket.socket, notices: socket.socket) -> int | None:
    """The exit code of the process, negative for a signal; `None` once the other end of `control` is closed."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(notices, select.POLLIN)
    while True:
        ended = _reaped()
        if process_id in ended:
            return ended[process_id]
        if any(descriptor == control.fileno() for descriptor, _ in poller.poll()):
            return None
        notices.recv(4096)


def _reaped() -> dict[int, int]:
    """The exit codes of the children that have ended, by their process ids."""
    ended = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0] != 0:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def _kill_descendants() -> dict[int, int]:
    """Kill until none is left, or for `_KILL_SECONDS`; the exit codes of those that were children.

    Who loses its parent becomes a child of this process, so without children there are no descendants.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        ended |= _reaped()
        try:
            # Without taking its exit code, which is for `_reaped`.
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            break
        for process_id in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)
    return ended


def _descendants() -> set[int]:
    """All processes that come from this one."""
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
