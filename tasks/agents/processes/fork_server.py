"""The program of the fork server: it imports the agent's module once and forks a process for every trial.

    python -P -m passgate.tasks.agents.processes.fork_server REQUESTS CONTROL MODULE:FUNCTION

REQUESTS and CONTROL are the numbers of inherited sockets. On the first the server sends one `ImportReport`; then each
message that brings three descriptors (the trial's turns, its control and its output) makes a process.
"""

import array
import gc
import os
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Final, NamedTuple

from passgate.tasks.agents.processes.function import AgentFunction, ImportProblemError, import_function
from passgate.tasks.agents.processes.messages import ImportReport
from passgate.tasks.agents.processes.process_tree import fork_kept
from passgate.tasks.agents.processes.trial_process import answer_turns

_DESCRIPTORS: Final = 3
_IMPORT_LATE: Final = "from passgate.tasks.agents.processes.fork_server import import_late; import_late()"


class _Connections(NamedTuple):
    """What a new process is given."""

    turns: socket.socket
    control: socket.socket
    output: int


def main() -> None:
    """Start under a keeper, import the agent and serve."""
    requests, control = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    target = sys.argv[3]
    fork_kept(control)
    requests.set_inheritable(False)
    _write_all_characters()
    try:
        function = import_function(target)
    except ImportProblemError as error:
        requests.send(ImportReport(problem=str(error)).model_dump_json().encode())
        return
    if threading.active_count() > 1:
        _start_again(requests, target)
    requests.send(ImportReport().model_dump_json().encode())
    _serve(requests, lambda: function)


def import_late() -> None:
    """Serve such that every process imports the agent itself; the agent is known to be importable."""
    _write_all_characters()
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    target = sys.argv[2]
    requests.send(ImportReport().model_dump_json().encode())
    _serve(requests, lambda: import_function(target))


def _start_again(requests: socket.socket, target: str) -> None:
    """Become a server that has not imported the agent: threads that its import has started do not survive a fork."""
    requests.set_inheritable(True)
    command = [sys.executable, "-P", "-c", _IMPORT_LATE, str(requests.fileno()), target]
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


def _write_all_characters() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[union-attr]


def _serve(requests: socket.socket, load: Callable[[], AgentFunction]) -> None:
    """Answer requests until passgate closes its end; a process of a trial answers its turns."""
    del sys.argv[1:]
    gc.freeze()  # what is collected in a fork is copied
    connections = _forked(requests)
    if connections is None:
        return
    requests.close()
    fork_kept(connections.control)
    answer_turns(connections.turns, connections.output, load)


def _forked(requests: socket.socket) -> _Connections | None:
    """In every new process what it was given; in the server `None`, at the end."""
    while (received := _received(requests)) is not None:
        _reap()
        if _fork() == 0:
            return received
        received.turns.close()
        received.control.close()
        os.close(received.output)
    return None


def _received(requests: socket.socket) -> _Connections | None:
    size = array.array("i").itemsize
    message, ancillary, _, _ = requests.recvmsg(1, socket.CMSG_LEN(_DESCRIPTORS * size), socket.MSG_CMSG_CLOEXEC)
    if not message:
        return None
    numbers = array.array("i")
    numbers.frombytes(ancillary[0][2])
    return _Connections(socket.socket(fileno=numbers[0]), socket.socket(fileno=numbers[1]), numbers[2])


def _fork() -> int:
    """As `os.fork`; -1 when the machine has no room for another process, which passgate sees by closed sockets."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        # Threads of native libraries, which look after themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except OSError:
            return -1


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
