"""The fork server as passgate sees it: started, asked for processes, ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from passgate.tasks.errors import UsageError
from passgate.tasks.files.environment import add_active_packages, inherited_variables, unusable_packages

IMPORT_SECONDS: Final = 300.0  # How long the import of an agent may take
_PROGRAM: Final = "passgate.tasks.agents.processes.fork_server"
_END_SECONDS: Final = 15.0
_LONGEST_REPORT: Final = 64 * 1024
_TAIL: Final = 1000


class TrialConnections(NamedTuple):
    """passgate's ends of what it shares with the process of a trial."""

    turns: socket.socket
    control: socket.socket  # Closing it ends the process and all that it started; its keeper reports on it
    output: int  # The descriptor that brings what is printed


class ForkServer:
    """Processes in which the agent `MODULE:FUNCTION` is loaded, made by forking one that has imported it.

    It starts in the working folder, with passgate's environment but for what begins with PASSGATE_JUDGE_. When
    passgate ends, however it ends, so do the server and every process that comes from it.
    """

    def __init__(self, target: str, variables: Mapping[str, str]) -> None:
        """Start the server and wait until it has imported the agent. Raises `UsageError`.

        `variables` lead to the models in a trial; these are their values before there is one.
        """
        self._target = target
        self._variables = variables
        self._lock = threading.Lock()
        self._start()

    def fork(self) -> TrialConnections:
        """Return connections to a new process. If the server starts none, both sockets are closed at once."""
        turns, their_turns = socket.socketpair()
        control, their_control = socket.socketpair()
        output, their_output = os.pipe()
        with their_turns, their_control, os.fdopen(their_output, "wb"), suppress(OSError):
            descriptors = [their_turns.fileno(), their_control.fileno(), their_output]
            socket.send_fds(self._requests, [b"f"], descriptors)
        return TrialConnections(turns, control, output)

    def restart_if_ended(self) -> None:
        """Start the server again if the agent, or anything else, has ended it. Raises `UsageError`."""
        with self._lock:
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                return
            self.close()
            self._start()

    def close(self) -> None:
        """End the server and every process that comes from it."""
        self._requests.close()
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self._requests, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, control = socket.socketpair()
        with tempfile.TemporaryFile() as printed:
            # Held open here too, the server's ends would hide that it has ended.
            with requests, control:
                numbers = (requests.fileno(), control.fileno())
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", _PROGRAM, *map(str, numbers), self._target, *self._variables],
                    env=add_active_packages({**inherited_variables(), **self._variables}),
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=printed,
                    pass_fds=numbers,
                    start_new_session=True,
                )
            try:
                if problem := self._import_problem():
                    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _TAIL))
                    tail = printed.read().decode("utf-8", "replace").strip()
                    found = [problem, unusable_packages() if "ModuleNotFoundError" in problem else ""]
                    printing = f". It printed: {tail}" if tail else ""
                    raise UsageError(f"the agent python:{self._target} {'; '.join(filter(None, found))}{printing}")
            except BaseException:
                self.close()
                raise

    def _import_problem(self) -> str:
        """Return why the agent cannot be used; empty if it can."""
        self._requests.settimeout(IMPORT_SECONDS)
        try:
            report = self._requests.recv(_LONGEST_REPORT)
        except TimeoutError:
            return f"cannot be imported: it takes longer than {IMPORT_SECONDS:g} s"
        except ConnectionResetError:
            report = b""
        self._requests.settimeout(None)
        if not report:
            status = b""
            self._control.settimeout(_END_SECONDS)
            with suppress(OSError):
                status = self._control.recv(_LONGEST_REPORT)
            return f"cannot be imported: {process_end(status)} while it was imported"
        try:
            return str(json.loads(report))
        except ValueError:
            return "cannot be imported: it writes into descriptors that are not its own"


def process_end(status: bytes) -> str:
    """Say how a process ended, by the line that its keeper sent."""
    try:
        code = int(status)
    except ValueError:
        return "its process was ended"
    if code >= 0:
        return f"its process exited with code {code}"
    names = {int(one): one.name for one in signal.Signals}
    return f"its process was ended by {names.get(-code, f'signal {-code}')}"
