"""The fork server as passgate sees it: started, asked for processes, ended."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from passgate.tasks.agents.inherited import inherited_variables
from passgate.tasks.agents.processes.messages import ImportReport, ProcessEnded
from passgate.tasks.errors import UsageError
from passgate.tasks.files.environment import with_active_packages

IMPORT_SECONDS: Final = 300.0  # How long the import of an agent may take
_PROGRAM: Final = "passgate.tasks.agents.processes.fork_server"
_END_SECONDS: Final = 15.0
_LONGEST_REPORT: Final = 64 * 1024
_TAIL: Final = 1000


class TrialConnections(NamedTuple):
    """passgate's ends of what it shares with the process of a trial."""

    turns: socket.socket
    control: socket.socket  # Closing it ends the process and all that it has started; it tells when they have ended
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

    def forked(self) -> TrialConnections:
        """Connections to a new process. Where none comes about, both sockets are closed at once."""
        turns, their_turns = socket.socketpair()
        control, their_control = socket.socketpair()
        output, their_output = os.pipe()
        try:
            handed_on = [their_turns.fileno(), their_control.fileno(), their_output]
            socket.send_fds(self._requests, [b"f"], handed_on)
        except OSError:
            pass  # the server has ended: whoever reads the connections sees it
        finally:
            their_turns.close()
            their_control.close()
            os.close(their_output)
        return TrialConnections(turns, control, output)

    def restart_if_ended(self) -> None:
        """Start the server again where the agent, or whoever, has ended it. Raises `UsageError`."""
        with self._lock:
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                return
            self._disconnect()
            self._start()

    def close(self) -> None:
        """End the server and every process that comes from it."""
        self._disconnect()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self._requests, their_requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, their_control = socket.socketpair()
        with their_requests, their_control, tempfile.TemporaryFile() as printed:
            numbers = (their_requests.fileno(), their_control.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, *map(str, numbers), self._target, *self._variables],
                env=with_active_packages({**inherited_variables(), **self._variables}),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=numbers,
                start_new_session=True,
            )
            # Held open here too, they would not tell that the server has ended.
            their_requests.close()
            their_control.close()
            try:
                problem = self._import_problem()
                if problem:
                    size = os.fstat(printed.fileno()).st_size
                    tail = os.pread(printed.fileno(), _TAIL, max(0, size - _TAIL)).decode("utf-8", "replace").strip()
                    told = f". It printed: {tail}" if tail else ""
                    raise UsageError(f"the agent python:{self._target} {problem}{told}")
            except BaseException:
                self.close()
                raise

    def _import_problem(self) -> str:
        """Why the agent cannot be used; empty when it can."""
        self._requests.settimeout(IMPORT_SECONDS)
        try:
            report = self._requests.recv(_LONGEST_REPORT)
        except TimeoutError:
            return f"cannot be imported: it takes longer than {IMPORT_SECONDS:g} s"
        except ConnectionResetError:
            report = b""
        self._requests.settimeout(None)
        if not report:
            self._control.settimeout(_END_SECONDS)
            try:
                end = ended_how(ProcessEnded.model_validate_json(self._control.recv(_LONGEST_REPORT)).status)
            except (OSError, ValidationError):
                end = ended_how(None)
            return f"cannot be imported: {end} while it was imported"
        try:
            return ImportReport.model_validate_json(report).problem
        except ValidationError:
            return "cannot be imported: it writes into descriptors that are not its own"

    def _disconnect(self) -> None:
        self._requests.close()
        self._control.close()


def ended_how(status: int | None) -> str:
    """How a process has ended, in words; `None` is not known."""
    if status is None:
        return "its process was ended"
    if status >= 0:
        return f"its process exited with code {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"
