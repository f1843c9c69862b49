"""The supervision of a worker: interrupts are handed on, its end is bounded, nothing of it is left behind."""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from passgate.flows.process.exit_code import result_of
from passgate.flows.process.worker_report import Reported, read_report
from passgate.tasks.errors import ExitCode

SECONDS_TO_INTERRUPT = 8.0  # So long an interrupted worker may take to clean up and to say how the run is carried on
SECONDS_TO_EXIT = 10.0
"""So long a worker that has reported its exit code may take to end; Prefect sends meanwhile what it has not sent."""
SECONDS_TO_EXIT_INTERRUPTED = 2.0  # CI systems kill what has not ended 10 s after an interrupt
_SECONDS_TO_DIE = 5.0
_CHUNK = 65536


class Supervision:
    """Watches one worker, a child process, until nothing of it is left."""

    def __init__(self, worker: int, report: int, command_ends: int, interrupts: Iterable[signal.Signals]) -> None:
        """`report` is the pipe that the worker reports to, `command_ends` one that ends with the command; the
        interrupts are blocked until here.
        """
        self._worker = worker
        self._report = report
        self._command_ends = command_ends
        self._told = b""
        self._status: int | None = None
        self._interrupted = self._killed = False
        self._deadline: float | None = None
        self._signals = _pipe_of({*interrupts, signal.SIGCHLD})
        self._watched = [self._signals, report, command_ends]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)

    def exit_code(self) -> int:
        """Wait for the end of the worker and end all that it has started; gives the exit code of the command."""
        while not self._has_ended():
            self._wait()
        self._hear_the_rest()
        status = self._status or 0
        _end_descendants()
        if self._interrupted or self._killed or os.WIFSIGNALED(status):
            _remove_left_folders()
        # A signal to the process group reaches the worker too, maybe before it is handed on to here.
        interrupted = self._interrupted or os.waitstatus_to_exitcode(status) == ExitCode.INTERRUPTED
        result = result_of(self._reported, status, interrupted=interrupted)
        for line in result.messages:
            _say(line)
        return result.exit_code

    @property
    def _reported(self) -> Reported:
        return read_report(self._told)

    def _has_ended(self) -> bool:
        """Reap every child that has ended; whether the worker is one of them."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._worker:
                    self._status = ended[1]
        return self._status is not None

    def _wait(self) -> None:
        """Wait until there is news or the deadline has passed, and do what follows."""
        seconds = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        ready, _, _ = select.select(self._watched, [], [], seconds)
        for pipe in ready:
            news = os.read(pipe, _CHUNK)
            if pipe == self._signals:
                self._hand_on(news)
            elif pipe == self._command_ends:
                # It was killed: whoever does that wants nothing to go on.
                self._watched.remove(pipe)
                self._kill()
            elif news:
                self._hear(news)
            else:
                self._watched.remove(pipe)
        if not ready:
            self._kill()

    def _hand_on(self, kinds: bytes) -> None:
        if not set(kinds) - {signal.SIGCHLD}:
            return
        if self._reported.exit_code is not None:
            # What the command answers is decided, and somebody does not want to wait for the rest.
            self._end_within(0)
        elif not self._interrupted:
            self._interrupted = True
            os.kill(self._worker, signal.SIGTERM)
            self._end_within(SECONDS_TO_INTERRUPT)

    def _hear(self, news: bytes) -> None:
        self._told += news
        if self._reported.exit_code is not None:
            self._end_within(SECONDS_TO_EXIT_INTERRUPTED if self._interrupted else SECONDS_TO_EXIT)

    def _hear_the_rest(self) -> None:
        """A child process of the worker can hold the pipe open, so its end is not waited for."""
        os.set_blocking(self._report, False)
        with suppress(BlockingIOError):
            while news := os.read(self._report, _CHUNK):
                self._told += news

    def _end_within(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _kill(self) -> None:
        if self._killed:
            # It hangs in the kernel, on a file system that does not answer; nobody is to hang with it.
            self._status = signal.SIGKILL
            return
        os.kill(self._worker, signal.SIGKILL)
        self._killed = True
        self._deadline = time.monotonic() + _SECONDS_TO_DIE


def _pipe_of(kinds: Iterable[signal.Signals]) -> int:
    """A pipe that gets the number of each of these signals that comes from now on, as a byte."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for kind in kinds:
        signal.signal(kind, _do_nothing)
    return reading


def _do_nothing(_kind: int, _frame: FrameType | None) -> None:
    """What a signal leads to is done where its number is read."""


def end_what_is_left() -> None:
    """End every process that a killed supervisor has left, and remove their folders."""
    _say("the process that supervised the work was killed")
    _end_descendants()
    _remove_left_folders()


def _end_descendants() -> None:
    """Kill what the worker has left. The children of what is killed become ours, so there may be more every time."""
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
    """Remove the temporary folders of the worker and its own workers, which may have been killed while they had some.

    What goes wrong here is told by the next run, which tries again.
    """
    from passgate.tasks.files.temporary import sweep

    with suppress(Exception):
        sweep()


def _children() -> list[int]:
    """The processes whose parent is this one. Not every kernel lists them under /proc/self."""
    me = os.getpid()
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent_of(entry) == me]


def _parent_of(process: Path) -> int | None:
    try:
        status = (process / "stat").read_bytes()
    except OSError:
        return None
    # The name of the program stands in parentheses and can hold any character; then come the state and the parent.
    return int(status.rpartition(b")")[2].split()[1])


def _say(message: str) -> None:
    """A line on standard error, whatever has become of it."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"passgate: {message}\n")
        sys.stderr.flush()
