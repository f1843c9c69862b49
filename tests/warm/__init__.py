"""Commands that start warm: forks of a process that has passgate imported, in place of new interpreters.

They are `python -m passgate`, `python -m prefect` and the code of tests that begins with `CODE`. A command's folder,
environment, streams, signals, process group and exit code are those of a real process. What an interpreter reads of its
environment when it starts cannot be: a command that changes some of it starts cold.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PASSGATE = (
    *("passgate.tasks.*", "passgate.flows.cli.*", "passgate.flows.process.*"),
    *("httpx", "jinja2", "pandas", "pyarrow.dataset", "uvicorn"),
)
"""All that a command without Prefect imports."""
PASSGATE_IN_PREFECT = (*PASSGATE, "passgate.flows.*", "prefect.cli", "prefect.workers.process")
CODE = (sys.executable, "-X", "warm", "-c")
"""What the command of code begins with that may start warm; a new interpreter knows no such option and goes on."""
_PROGRAMS = ([sys.executable, "-m", "passgate"], [sys.executable, "-m", "prefect"], list(CODE))
_READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "LD_")


class WarmServer:
    """Starts commands from its first one until this process ends."""

    def __init__(
        self,
        modules: Sequence[str] = PASSGATE,
        environment: Mapping[str, str] | None = None,
        reads: Sequence[str] = (),
        also: Mapping[str, str] | None = None,
    ) -> None:
        """`modules` are imported with the variables of `environment`, and read those whose names begin as `reads`.

        `also` are variables that commands set themselves before they import.
        """
        self._modules = modules
        self._environment = {**os.environ, **(environment or {})}
        self._also = dict(also or {})
        self._reads = (*_READ_AT_THE_START, *reads)
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()

    def can_start(self, command: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Whether this is one of its commands, in an environment that a running interpreter can change to."""
        names = {name for name in {*environment, *self._environment} if name.startswith(self._reads)}
        same = all(environment.get(name) == self._environment.get(name) for name in names)
        return same and any(list(command[: len(program)]) == program for program in _PROGRAMS)

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, socket.socket]:
        """Start a command with these standard streams; its process id, and where its exit status will come from."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            if self._control is None:
                self._control, self._process = self._started()
            socket.send_fds(self._control, [b"."], [theirs.fileno(), *streams])
        ours.sendall(json.dumps(request).encode() + b"\n")
        return int(_line(ours)), ours

    def _started(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent), str(theirs.fileno()), *self._modules],
                # A second thread would not be there in a fork.
                env={**self._also, **self._environment, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
            )
        return ours, process


class WarmProcess(subprocess.Popen[Any]):
    """A command that a warm server has forked."""

    def __init__(self, server: WarmServer, command: Sequence[str], **options: Any) -> None:
        """`options` are those of `subprocess.Popen`."""
        self._server = server
        super().__init__(command, **options)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        (_, _, _, _, folder, environment, _, _, _, stdin, stdin_ours, out_ours, out, error_ours, error, *_) = others
        request = {
            "command": [os.fspath(word) for word in args],
            "folder": os.fspath(folder or Path.cwd()),
            "environment": dict(environment),
            "new_session": others[-2],
        }
        streams = [number if stream == -1 else stream for number, stream in enumerate((stdin, out, error))]
        self.pid, self._ended = self._server.fork(request, streams)
        self._child_created = True
        self._close_pipe_fds(stdin, stdin_ours, out_ours, out, error_ours, error)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        self._ended.settimeout(0 if wait_flags & os.WNOHANG else None)
        try:
            status = int(_line(self._ended))
        except BlockingIOError:
            return 0, 0
        self._ended.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._child_created and self._waitpid_lock.acquire(blocking=False):
            try:
                process, status = self._try_wait(os.WNOHANG)
                if process:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


servers = [WarmServer()]
"""The first one that can start a command does; if none can, the command starts cold."""


def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a command, warm where it can be. `options` are those of `subprocess.Popen`, with `env` among them.

    What interrupts it does so also where these tests ignore it, as a shell and nohup have them do.
    """
    server = next((one for one in servers if one.can_start(command, options["env"])), None)
    if server is not None:
        return WarmProcess(server, command, **options)
    return subprocess.Popen(command, preexec_fn=_hear_interrupts, **options)


def _hear_interrupts() -> None:
    for kind in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(kind, signal.SIG_DFL)


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError("the process that starts commands has ended")
        line += byte
    return line
