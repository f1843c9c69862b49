"""Supervise a worker: forward interrupts, limit the time to its end, kill what it leaves behind."""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from passgate.flows.process.exit_code import Reported, command_result, read_report
from passgate.tasks.errors import ExitCode

SECONDS_TO_INTERRUPT = 8.0  # For an interrupted worker to clean up and to say how to resume the run
SECONDS_TO_EXIT = 10.0
"""For a worker to exit after it reported its exit code; meanwhile Prefect sends its last data."""
SECONDS_TO_EXIT_INTERRUPTED = 2.0  # CI systems kill what has not ended 10 s after an interrupt
_SECONDS_TO_DIE = 5.0
_CHUNK = 65536


class Supervision:
    """Watches one worker, a child process, until nothing of it is left."""

    def __init__(self, worker: int, report: int, command_ends: int, interrupts: Iterable[signal.Signals]) -> None:
        """Watch a worker. `report` is the pipe of its reports, `command_ends` a pipe that closes when the command ends.

        The `interrupts` are blocked until here.
        """
        self._worker = worker
        self._report = report
        self._command_ends = command_ends
        self._received = b""
        self._status: int | None = None
        self._interrupted = self._killed = False
        self._deadline: float | None = None
        self._signals = _signal_pipe({*interrupts, signal.SIGCHLD})
        self._watched = [self._signals, report, command_ends]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)

    def exit_code(self) -> int:
        """Wait for the end of the worker, kill what it started and return the exit code of the command."""
        while not self._has_ended():
            self._wait()
        self._receive_rest()
        status = self._status or 0
        _kill_descendants()
        if self._interrupted or self._killed or os.WIFSIGNALED(status):
            _remove_left_folders()
        # A signal to the process group reaches the worker too, perhaps before the command forwards it to here.
        interrupted = self._interrupted or os.waitstatus_to_exitcode(status) == ExitCode.INTERRUPTED
        result = command_result(self._reported, status, interrupted=interrupted)
        for line in result.messages:
            _print(line)
        return result.exit_code

    @property
    def _reported(self) -> Reported:
        return read_report(self._received)

    def _has_ended(self) -> bool:
        """Reap every child that has ended. Return whether the worker is one of them."""
        with suppress(ChildProcessError):
            while (child := os.waitpid(-1, os.WNOHANG))[0]:
                if child[0] == self._worker:
                    self._status = child[1]
        return self._status is not None

    def _wait(self) -> None:
        """Wait for a signal, a report, the end of the command or the deadline, and handle it."""
        seconds = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        ready, _, _ = select.select(self._watched, [], [], seconds)
        for pipe in ready:
            news = os.read(pipe, _CHUNK)
            if pipe == self._signals:
                self._forward(news)
            elif pipe == self._command_ends:
                # Somebody killed the command, so nothing of it shall go on.
                self._watched.remove(pipe)
                self._kill()
            elif news:
                self._receive(news)
            else:
                self._watched.remove(pipe)
        if not ready:
            self._kill()

    def _forward(self, kinds: bytes) -> None:
        if not set(kinds) - {signal.SIGCHLD}:
            return
        if self._reported.exit_code is not None:
            # The exit code is known, and the user does not want to wait for the rest.
            self._set_deadline(0)
        elif not self._interrupted:
            self._interrupted = True
            os.kill(self._worker, signal.SIGTERM)
            self._set_deadline(SECONDS_TO_INTERRUPT)

    def _receive(self, news: bytes) -> None:
        self._received += news
        if self._reported.exit_code is not None:
            self._set_deadline(SECONDS_TO_EXIT_INTERRUPTED if self._interrupted else SECONDS_TO_EXIT)

    def _receive_rest(self) -> None:
        """Read the pipe without waiting for its end, because a child process of the worker can keep it open."""
        os.set_blocking(self._report, False)
        with suppress(BlockingIOError):
            while news := os.read(self._report, _CHUNK):
                self._received += news

    def _set_deadline(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _kill(self) -> None:
        if self._killed:
            # It hangs in the kernel, on a file system that does not answer. Do not wait for it.
            self._status = signal.SIGKILL
            return
        os.kill(self._worker, signal.SIGKILL)
        self._killed = True
        self._deadline = time.monotonic() + _SECONDS_TO_DIE


def _signal_pipe(kinds: Iterable[signal.Signals]) -> int:
    """Return a pipe that receives the number of each of these signals from now on, as a byte."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for kind in kinds:
        signal.signal(kind, _do_nothing)
    return reading


def _do_nothing(_kind: int, _frame: FrameType | None) -> None:
    """Leave the signal to the reader of the pipe."""


def clean_up_after_supervisor() -> None:
    """Kill the processes that a killed supervisor left behind, and remove their folders."""
    _print("the process that supervised the work was killed")
    _kill_descendants()
    _remove_left_folders()


def _kill_descendants() -> None:
    """Kill every descendant. The children of a killed process become this process's, so repeat until none is left."""
    deadline = time.monotonic() + _SECONDS_TO_DIE
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.005)


def _remove_left_folders() -> None:
    """Remove the temporary folders of the worker and of its own workers.

    Ignore errors: the next run tries again and reports them.
    """
    from passgate.tasks.files.temporary import sweep

    with suppress(Exception):
        sweep()


def _children() -> list[int]:
    """Return the child processes of this process. Not every kernel lists them under /proc/self."""
    me = os.getpid()
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent_pid(entry) == me]


def _parent_pid(process: Path) -> int | None:
    try:
        status = (process / "stat").read_bytes()
    except OSError:
        return None
    # The program's name is in parentheses and can contain any character. The state and the parent follow it.
    return int(status.rpartition(b")")[2].split()[1])


def _print(message: str) -> None:
    """Print a line on standard error, if it still exists."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"passgate: {message}\n")
        sys.stderr.flush()
