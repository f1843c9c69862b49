"""Supervise a worker: forward interrupts, limit the time to its end, kill what it leaves behind, find the exit code."""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from passgate.tasks.errors import ExitCode

SECONDS_TO_INTERRUPT = 8.0  # For an interrupted worker to clean up and to say how to resume the run
SECONDS_TO_EXIT = 10.0
"""For a worker to exit after it reported its exit code; meanwhile Prefect sends its last data."""
SECONDS_TO_EXIT_INTERRUPTED = 2.0  # CI systems kill what has not ended 10 s after an interrupt
_SECONDS_TO_DIE = 5.0
_CHUNK = 65536
_CODES = {"PASS": ExitCode.PASS, "FAIL": ExitCode.FAIL, "INCONCLUSIVE": ExitCode.INCONCLUSIVE}


@dataclass(frozen=True, kw_only=True)
class BegunRun:
    """A run that has begun. Its folder has no verdict of an earlier attempt any more."""

    run_id: str
    gate: str
    verdict_file: str  # Absolute

    def read_decision(self) -> str | None:
        """Return the decision of the verdict, or `None` if the file is missing, incomplete or of another run."""
        try:
            verdict = json.loads(Path(self.verdict_file).read_bytes())
            decision = verdict["decision"] if verdict["run_id"] == self.run_id else None
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return decision if decision in _CODES else None


class WorkerReport:
    """The worker's end of the pipe to its supervisor. Without a pipe, reports go nowhere."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def report_run(self, run: BegunRun) -> None:
        """Report the run whose verdict is the exit code of the command."""
        self._write({"run": asdict(run)})

    def report_exit(self, exit_code: int) -> None:
        """Report the exit code. Only the end of the process is left to do."""
        self._write({"exit_code": exit_code})

    def _write(self, report: dict[str, object]) -> None:
        if self._pipe is not None:
            os.write(self._pipe, json.dumps(report).encode() + b"\n")


class Supervision:
    """Watches one worker, a child process, until nothing of it is left."""

    def __init__(self, worker: int, report: int, command_ends: int, interrupts: Iterable[signal.Signals]) -> None:
        """Watch a worker. `report` is the pipe of its reports, `command_ends` a pipe that closes when the command ends.

        The `interrupts` are blocked until here.
        """
        self._worker, self._report, self._command_ends = worker, report, command_ends
        self._received = b""
        self._run: BegunRun | None = None
        self._exit_code: int | None = None
        self._status: int | None = None
        self._interrupted = self._killed = False
        self._deadline: float | None = None
        self._signals, writing = os.pipe()
        os.set_blocking(writing, False)
        # Each signal arrives as a byte in the pipe. Its handler has nothing to do.
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for kind in {*interrupts, signal.SIGCHLD}:
            signal.signal(kind, _do_nothing)
        self._watched = [self._signals, report, command_ends]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)

    def exit_code(self) -> int:
        """Wait for the end of the worker, kill what it started and return the exit code of the command."""
        while not self._has_ended():
            self._wait()
        # Do not wait for the end of the pipe, because a child process of the worker can keep it open.
        os.set_blocking(self._report, False)
        with suppress(BlockingIOError):
            while news := os.read(self._report, _CHUNK):
                self._receive(news)
        status = self._status or 0
        _kill_descendants()
        if self._interrupted or self._killed or os.WIFSIGNALED(status):
            _remove_left_folders()
        return self._command_result(status)

    def _command_result(self, status: int) -> int:
        """Return the exit code of the command. Print what the worker could not print any more.

        If the command has a run with a verdict, the verdict decides. A worker that reported nothing did not finish,
        whatever its own exit code, so there is no answer: exit code 3.
        """
        code, run = os.waitstatus_to_exitcode(status), self._run
        ended = f"was killed ({signal.strsignal(-code)})" if code < 0 else f"exited {code}"
        ended = f"the process that did the work {ended}"
        decision = None if run is None else run.read_decision()
        if run is not None and decision is not None:
            if self._exit_code is None:
                _print(f"{ended} after the verdict, which stands: {decision}, {os.path.relpath(run.verdict_file)}")
            return _CODES[decision]
        needs_verdict = run is not None and self._exit_code in {ExitCode.PASS, ExitCode.FAIL}
        if self._exit_code is not None and not needs_verdict:
            return self._exit_code
        remedy = "" if run is None else f"; resume the run with `passgate run {run.gate} --resume {run.run_id}`"
        # A signal to the process group reaches the worker too, perhaps before the command forwards it to here.
        if self._interrupted or code == ExitCode.INTERRUPTED:
            _print(f"interrupted{remedy}")
            return ExitCode.INTERRUPTED
        _print(f"{ended} before there was {'an answer' if run is None else 'a verdict'}{remedy}")
        return ExitCode.INCONCLUSIVE

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
                # Somebody killed the command, so kill everything that belongs to it.
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
        if self._exit_code is not None:
            # The exit code is known, and the user does not want to wait for the rest.
            self._set_deadline(0)
        elif not self._interrupted:
            self._interrupted = True
            os.kill(self._worker, signal.SIGTERM)
            self._set_deadline(SECONDS_TO_INTERRUPT)

    def _receive(self, news: bytes) -> None:
        """Read the reports of the worker. Keep an unfinished last line for later."""
        *lines, self._received = (self._received + news).split(b"\n")
        for report in map(json.loads, lines):
            if "run" in report:
                self._run = BegunRun(**report["run"])
            self._exit_code = report.get("exit_code", self._exit_code)
        if self._exit_code is not None:
            self._set_deadline(SECONDS_TO_EXIT_INTERRUPTED if self._interrupted else SECONDS_TO_EXIT)

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
            # Not every kernel lists the child processes under /proc/self.
            for process in Path("/proc").glob("[0-9]*"):
                if _parent_pid(process) == os.getpid():
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(int(process.name), signal.SIGKILL)
            time.sleep(0.005)


def _parent_pid(process: Path) -> int | None:
    try:
        status = (process / "stat").read_bytes()
    except OSError:
        return None
    # The program's name is in parentheses and can contain any character. The state and the parent follow it.
    return int(status.rpartition(b")")[2].split()[1])


def _remove_left_folders() -> None:
    """Remove the temporary folders of the worker and of its own workers.

    Ignore errors: the next run tries again and reports them.
    """
    from passgate.tasks.files.temporary import sweep

    with suppress(Exception):
        sweep()


def _print(message: str) -> None:
    """Print a line on standard error, if it still exists."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"passgate: {message}\n")
        sys.stderr.flush()
