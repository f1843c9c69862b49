"""Commands that tests start and then disturb, and what they leave running."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Project


def interrupted(
    project: Project,
    command: list[str],
    kind: signal.Signals,
    when: Callable[[], bool],
    seconds: float = 90,
    *,
    ends_within: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Start a command, send it a signal as soon as something holds, and wait until it has ended of itself.

    Raises `subprocess.TimeoutExpired` if it has not ended some seconds after the signal.
    """
    process = subprocess.Popen(
        hearing_interrupts(command),
        cwd=project.path,
        env=project.full_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            wait_until(when, seconds)
            process.send_signal(kind)
            stdout, stderr = process.communicate(timeout=ends_within)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def hearing_interrupts(command: list[str]) -> list[str]:
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


def worker_of(supervisor: int) -> int:
    """The process that does the work of a command, as soon as there is one."""
    found: list[int] = []

    def is_there() -> bool:
        found.extend(child for child in process_ids() if parent_of(child) == supervisor)
        return bool(found)

    wait_until(is_there)
    return found[0]


def process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def parent_of(process_id: int) -> int | None:
    """`None` where the process is gone, or only its exit status is left."""
    try:
        state, parent = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def how_to_resume(folder: Path) -> str:
    """What an interrupted command says at its end, of the only ci_merge run in a folder."""
    (run,) = (folder / ".passgate" / "runs").iterdir()
    return f"carry the run on with `passgate run ci_merge --resume {run.name}`"
