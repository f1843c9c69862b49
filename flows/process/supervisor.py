"""Run the `passgate` command in three processes, so that nothing of it survives, whichever of them is killed.

- The command starts the supervisor, forwards signals to it and exits with its code. If the supervisor is killed, the
  command kills everything that is left.
- The supervisor starts the worker and decides the exit code. When the worker has ended or the command is gone, it kills
  everything that is left. It has its own session, so a kill of the command's process group does not reach it.
- The worker does the work.

Before the worker starts, none of them imports much, because every command waits for it.
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
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"  # The file of the stack frames of an import


def main() -> int:
    """Run the command of this process in a worker, a child process, and return the exit code of the command.

    An agent, an extension module or the kernel can end the worker at any moment with any code, even 0. So the exit code
    is that of the verdict on disk, or the one that the worker reported, and never the worker's own.
    """
    if sys.getfilesystemencoding() != "utf-8":
        # Otherwise arguments, file names and output would have another encoding than passgate's files.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    if "_PASSGATE_COMPLETE" in os.environ or sys.argv[1:2] in (["--install-completion"], ["--show-completion"]):
        # The shell waits for the completions, and there is nothing to supervise.
        from passgate.flows.cli import complete

        return complete()
    # Without those that a shell or nohup set to be ignored.
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    interrupts = {kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN}
    # A signal that arrives before its handler exists waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupts)
    # Nobody writes to this pipe. It closes when the command ends.
    command_ends, held = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(held)
        exit_code = _supervise(command_ends, interrupts)
    else:
        os.close(command_ends)
        exit_code = _wait_for(supervisor, interrupts)
    # Python takes its signal handlers away before it exits. An interrupt would then replace the exit code.
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupts)
    return exit_code


def _supervise(command_ends: int, interrupts: set[signal.Signals]) -> int:
    """Start the worker, watch it and return the exit code of the command."""
    reading, writing = os.pipe()
    supervisor = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        os.close(command_ends)
        # Let the kernel kill the worker when the supervisor is gone.
        _set_process_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os.kill(os.getpid(), signal.SIGKILL)
        return _work(writing, interrupts)
    os.close(writing)
    # After the fork: the worker stays in the foreground of the terminal, which it may read from.
    os.setsid()
    _adopt_orphans()
    from passgate.flows.process.supervision import Supervision

    return Supervision(worker, reading, command_ends, interrupts).exit_code()


def _wait_for(supervisor: int, interrupts: set[signal.Signals]) -> int:
    """Forward signals to the supervisor until it has ended. Return its exit code."""

    def forward(kind: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(supervisor, kind)

    _adopt_orphans()
    for kind in interrupts:
        signal.signal(kind, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
    _, status = os.waitpid(supervisor, 0)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    from passgate.flows.process.supervision import clean_up_after_supervisor

    clean_up_after_supervisor()
    return _INCONCLUSIVE


def _work(report: int, interrupts: Iterable[signal.Signals]) -> int:
    """Run the command and report to the supervisor. Return the exit code of the worker, which nobody relies on.

    A terminal sends ^C to all processes. The supervisor turns every interrupt into one SIGTERM for the worker.
    """
    for kind in interrupts:
        signal.signal(kind, _ignore)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
    # The memory of a run grows with its trials and has few cycles. At the default threshold the collector scans all of
    # it again and again, and reading a journal of 5000 trials takes four times as long.
    gc.set_threshold(100_000, 50, 100)
    try:
        from passgate.flows.cli import main as run_command
        from passgate.flows.process.supervision import WorkerReport

        return run_command(report=WorkerReport(report))
    except KeyboardInterrupt:  # before the command has begun; the supervisor prints the message
        return _INTERRUPTED


def _ignore(_kind: int, _frame: FrameType | None) -> None:
    """Do nothing. The worker's child processes would inherit SIG_IGN."""


def _interrupt(_kind: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt` for the first signal only, so that nothing interrupts the clean-up.

    During an import, exit at once: a library could turn the interrupt into another error, which would look like a bug,
    and there is nothing to clean up. The supervisor prints the message.
    """
    signal.signal(signal.SIGTERM, _ignore)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _adopt_orphans() -> None:
    """Become the parent of all orphaned descendants, so that none of them outlives the command."""
    _set_process_option(_PR_SET_CHILD_SUBREAPER, 1)


def _set_process_option(option: int, value: int) -> None:
    """Call `prctl`, which only Linux has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
