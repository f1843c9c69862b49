"""Commands that tests start and then disturb, and what they leave running."""

import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.project import Project
from tests.waiting import wait_until


def interrupted(
    project: Project, command: list[str], kind: signal.Signals, when: Callable[[], bool], *, ends_within: float = 120
) -> subprocess.CompletedProcess[str]:
    """Start a command, send it a signal as soon as something holds, and wait until it has ended of itself.

    Raises `subprocess.TimeoutExpired` if it has not ended some seconds after the signal.
    """
    with project.started(command) as process:
        wait_until(when)
        process.send_signal(kind)
        stdout, stderr = process.communicate(timeout=ends_within)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def marked_processes(mark: str) -> list[int]:
    """The processes that carry a mark in their command line."""
    found = []
    for process_id in process_ids():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{process_id}/cmdline").read_bytes():
                found.append(process_id)
    return found


def supervisor_of(command: int) -> int:
    """The process that supervises the work of a command, as soon as there is one."""
    return _child_of(command)


def worker_of(command: int) -> int:
    """The process that does the work of a command, as soon as there is one."""
    return _child_of(supervisor_of(command))


def _child_of(parent: int) -> int:
    def children() -> list[int]:
        return [child for child in process_ids() if parent_of(child) == parent]

    wait_until(children)
    return children()[0]


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
    return f"resume the run with `passgate run ci_merge --resume {run.name}`"
