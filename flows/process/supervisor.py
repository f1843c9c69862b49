"""The `passgate` command: three processes, so that nothing of a command outlives it, whichever of them is killed.

- The command itself starts the supervisor, hands signals on to it and exits with its code. When the supervisor is
  killed, it ends all that is left.
- The supervisor starts the worker and owns the exit code. When the worker has ended or the command is gone, it ends
  all that is left. It has a session of its own: whoever kills the process group of the command does not reach it.
- The worker does the work.

None of them imports much before the worker has started: whatever they import, every command waits for.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_INTERRUPTED = 130
_INCONCLUSIVE = 3
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"  # Where the frames of an import that is under way come from


def main() -> int:
    """Run the command of this process in a worker, a child process; gives the exit code of what the worker has done.

    An agent, an extension module or the kernel can end the worker at any moment and with any code, 0 included. So the
    exit code is that of the verdict on disk, or the one that the worker has reported, and never the worker's own.
    """
    if sys.getfilesystemencoding() != "utf-8":
        # Arguments, names of files and what is written would be of another encoding than all that passgate reads.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    if "_PASSGATE_COMPLETE" in os.environ or sys.argv[1:2] in (["--install-completion"], ["--show-completion"]):
        # A shell waits for what could come next: there is nothing to supervise.
        from passgate.flows.cli.completion import complete

        return complete()
    interrupts = _interrupts()
    # A signal that comes before its handler is there waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupts)
    # Nobody writes to it: it ends with the command.
    command_ends, held = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(held)
        return _supervise(command_ends, interrupts)
    os.close(command_ends)
    return _wait_for(supervisor, interrupts)


def _supervise(command_ends: int, interrupts: set[signal.Signals]) -> int:
    """Start the worker and watch it; gives the exit code of the command."""
    reading, writing = os.pipe()
    supervisor = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        os.close(command_ends)
        _end_with(supervisor)
        return _work(writing, interrupts)
    os.close(writing)
    # After the fork: the worker stays in the foreground of the terminal, which it may read from.
    os.setsid()
    _adopt_orphans()
    from passgate.flows.process.supervision import Supervision

    return Supervision(worker, reading, command_ends, interrupts).exit_code()


def _wait_for(supervisor: int, interrupts: set[signal.Signals]) -> int:
    """Hand signals on to the supervisor until it has ended; gives its exit code."""

    def hand_on(kind: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(supervisor, kind)

    _adopt_orphans()
    for kind in interrupts:
        signal.signal(kind, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
    _, status = os.waitpid(supervisor, 0)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    from passgate.flows.process.supervision import end_what_is_left

    end_what_is_left()
    return _INCONCLUSIVE


def _interrupts() -> set[signal.Signals]:
    """The signals that ask the command to end. Those that a shell or nohup has had ignored stay so."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return {kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN}


def _work(report: int, interrupts: Iterable[signal.Signals]) -> int:
    """Run the command, and report to the supervisor; gives the exit code of the worker, which nobody relies on.

    A terminal sends ^C to both processes. The supervisor makes a SIGTERM of whatever asks it to end, so that the worker
    hears of it once.
    """
    for kind in interrupts:
        signal.signal(kind, _ignore)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
    # What a run holds grows with its trials and has next to no cycles: at the usual threshold the collector looks
    # through all of it again and again, and reading a journal of 5000 trials takes four times as long.
    gc.set_threshold(100_000, 50, 100)
    try:
        from passgate.flows.cli import main as run_command
        from passgate.flows.process.worker_report import WorkerReport

        return run_command(report=WorkerReport(report))
    except KeyboardInterrupt:  # before the command has begun; the supervisor says so
        return _INTERRUPTED


def _ignore(_kind: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN, which the worker's own child processes would inherit."""


def _interrupt(_kind: int, frame: FrameType | None) -> None:
    """End what is going on, once: clean-up is not to be interrupted.

    A library that is interrupted in the midst of its import can make another error of it, which would look like a bug.
    An import leaves nothing to clean up, so the process ends at once; the supervisor says why.
    """
    signal.signal(signal.SIGTERM, _ignore)
    if _is_importing(frame):
        os._exit(_INTERRUPTED)
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False


def _end_with(supervisor: int) -> None:
    """Have the kernel kill this process as soon as the supervisor is gone, which nobody else could then do."""
    _set_process_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGKILL)


def _adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end, so that none of them outlives the command."""
    _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)


def _set_process_option(option: int, value: int) -> None:
    """`prctl`, which only Linux has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
