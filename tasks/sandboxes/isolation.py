"""How commands of a trial are kept apart from the machine: bubblewrap where it works, else a process group.

bubblewrap: the machine is read-only, the suites folder, the history and other trials cannot be seen, there is
no network unless asked for, and every process ends with the first one. A process group has none of that.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PROBE_SECONDS = 10
_TEMPORARY = Path("/tmp")  # noqa: S108 - every command gets one of its own
TRIAL_FOLDERS = ("workspace", "scratch", "home", "tmp")
"""What a trial's folder holds, and all that its commands may write to."""
_MAX_KEPT = 256
# Files of at most 1 GiB and no core dumps: a runaway agent must not fill the disk.
_LIMITED = ("sh", "-c", 'ulimit -c 0; ulimit -f 2097152; exec "$@"', "sh")


class Isolation(Protocol):
    """One way of keeping commands apart."""

    @property
    def name(self) -> str:
        """What trial rows call it."""

    @property
    def contains_processes(self) -> bool:
        """Whether every process of a command ends with its first one."""

    def wrap(self, command: Sequence[str], *, trial_folder: Path, workspace: Path, network: bool) -> list[str]:
        """The command that runs another one in the workspace, kept apart."""


@dataclass(frozen=True)
class ProcessGroup:
    """Only a session of its own and limits."""

    name: str = "process_group"
    contains_processes: bool = False

    def wrap(self, command: Sequence[str], *, trial_folder: Path, workspace: Path, network: bool) -> list[str]:
        return [*_LIMITED, *command]


@dataclass(frozen=True)
class Bubblewrap:
    """Linux namespaces. Commands see `hidden` folders empty, and in a /tmp of their own the `kept` entries."""

    executable: str
    hidden: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    name: str = "bubblewrap"
    contains_processes: bool = True

    def wrap(self, command: Sequence[str], *, trial_folder: Path, workspace: Path, network: bool) -> list[str]:
        options = [
            *("--ro-bind", "/", "/"),
            *("--dev", "/dev"),
            *("--proc", "/proc"),
            *("--tmpfs", str(_TEMPORARY)),
            *(part for entry in self.kept for part in ("--ro-bind-try", str(entry), str(entry))),
            *(part for folder in self.hidden for part in ("--tmpfs", str(folder))),
            # Each by itself: a mount point can neither be renamed nor replaced by a link to elsewhere.
            *(part for name in TRIAL_FOLDERS for part in ("--bind-try", *[str(trial_folder / name)] * 2)),
            *("--chdir", str(workspace)),
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--die-with-parent",
            "--new-session",
            *("--cap-drop", "ALL"),  # else root could take all of this back
            *(() if network else ("--unshare-net",)),
        ]
        return [self.executable, *options, "--", *_LIMITED, *command]


def best_isolation(hidden: Sequence[Path], *, run_folder: Path) -> Isolation:
    """The strongest isolation that this machine really offers, tried once with a harmless command.

    `hidden` are folders that no command may see, `run_folder` the one that all trials' folders lie in.
    """
    executable = shutil.which("bwrap")
    if executable is None:
        return ProcessGroup()
    isolation = Bubblewrap(
        executable, (*(folder.resolve() for folder in hidden if folder.is_dir()), run_folder), _kept_entries(run_folder)
    )
    probe = isolation.wrap(["true"], trial_folder=run_folder, workspace=run_folder, network=False)
    try:
        works = subprocess.run(probe, capture_output=True, timeout=_PROBE_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    return isolation if works else ProcessGroup()


def _kept_entries(run_folder: Path) -> tuple[Path, ...]:
    """What lies in /tmp now, where agents and whole checkouts may live: readable beside a writable /tmp."""
    try:
        entries = sorted(_TEMPORARY.iterdir())
    except OSError:
        return ()
    needed = [Path.cwd(), Path(sys.prefix), Path(sys.base_prefix)]
    if len(entries) > _MAX_KEPT:
        entries = [entry for entry in entries if any(path.is_relative_to(entry) for path in needed)]
    return tuple(entry for entry in entries if entry != run_folder and not entry.is_symlink())
