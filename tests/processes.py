"""Commands that tests start and then disturb, and what they leave running."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Project


def interrupted(
    project: Project, command: list[str], kind: signal.Signals, when: Callable[[], bool]
) -> subprocess.CompletedProcess[str]:
    """Start a command, send it a signal as soon as something holds, and wait until it has ended of itself."""
    process = subprocess.Popen(
        _hearing_interrupts(command),
        cwd=project.path,
        env=project.full_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            wait_until(when)
            process.send_signal(kind)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _hearing_interrupts(command: list[str]) -> list[str]:
    """The command with interrupts as they are by default: a shell's background jobs, as these tests may be, ignore them
    and hand that on.
    """
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, *command]


def wait_until(holds: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until something holds. Raises `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for did not come about")
        time.sleep(0.05)


def marked_processes(mark: str) -> list[int]:
    """The processes that carry a mark in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
