"""How commands of a trial are kept apart from the machine: bubblewrap where it works, else a process group.

bubblewrap: the machine is read-only, the suites folder, the history and other trials cannot be seen, there is
no network unless asked for (only a bridge to one server, for those that need it), and every process ends with the
first one. A process group has none of that.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.files.environment import active_environment
from passgate.tasks.files.temporary import BUG_PREFIX, ROOT_PREFIX, private_roots
from passgate.tasks.model.sandbox import Bridge

_TEMPORARY = Path("/tmp")  # noqa: S108 - every command gets one of its own
# Each entry is a mount for every command: of a /tmp that has more, only what passgate itself needs is kept.
_MAX_KEPT = 256
# Where the machine's services have their sockets: who reaches Docker's has the machine, network or not.
_RUNTIME = Path("/run")
# Names are resolved by the files; beside them are sockets that ask the network. NixOS has its programs in the others.
_SHOWN_OF_RUNTIME = (
    *("systemd/resolve/resolv.conf", "systemd/resolve/stub-resolv.conf", "NetworkManager/resolv.conf"),
    *("current-system", "wrappers"),
)
_RESOLVER = Path("/etc/resolv.conf")
_NO_RESOLVER = Path(__file__).resolve().with_name("resolv.conf")
# Folders of /tmp that hold sockets of programs which do more than an agent may.
_DOORS = ("ssh-*", ".X11-unix", ".ICE-unix", "tmux-*")
# What of /tmp is passgate's own: the trials and hidden tests of other gates, and what went wrong in them.
_PRIVATE = (f"{ROOT_PREFIX}*", f"{BUG_PREFIX}*")
PROBE_SECONDS = (10.0, 60.0)  # a busy machine gets a second, longer chance
ISOLATION_REMEDY = (
    "install it (`sudo apt-get install bubblewrap`, `sudo dnf install bubblewrap`) and allow user namespaces, on "
    "Ubuntu with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
)
UNISOLATED = (
    "the agent can read the tests and the solutions, use the network and write where you can; `isolation: required` in "
    "gates.yaml refuses such runs"
)
_BRIDGE_PROGRAM = Path(__file__).resolve().with_name("bridge.py")
STARTED = "\0"  # what is written to standard error once the isolation stands, before the command begins
# Files of at most 1 GiB and no core dumps: a runaway agent must not fill the disk. Not the `sh` of a PATH that an
# agent's definition may set.
_LIMITED = ("/bin/sh", "-c", "printf '\\000' >&2; ulimit -c 0; ulimit -f 2097152; exec \"$@\"", "sh")
_WORKED = set[tuple[str, frozenset[Path], bool]]()
"""Isolations that have worked in this process: the program, the folders that it hides, whether it has a bridge."""


class Launch(NamedTuple):
    """How a process is started that runs a command apart."""

    command: list[str]
    environment: Mapping[str, str]
    working_folder: Path
    options: Sequence[str] = ()  # Further ones, which other processes of the machine must not read


@dataclass(frozen=True)
class Isolation:
    """Bubblewrap, which uses Linux namespaces, or, without its program, only a session of its own and limits.

    Under bubblewrap, commands see `hidden` folders empty, and in a /tmp of their own the `kept` entries.
    """

    bubblewrap: str = ""  # The program
    why_not: str = ""  # Why it is not bubblewrap
    hidden: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()  # What of hidden folders can be seen all the same

    @property
    def name(self) -> str:
        """Return what trial rows call this way of keeping commands apart."""
        return "bubblewrap" if self.bubblewrap else "process_group"

    def wrap(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        working_folder: Path,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        network: bool,
        bridge: Bridge | None,
    ) -> Launch:
        """Return what runs a command with these variables apart. Of a run it sees what is `writable` or `readable` for
        it. Without network it can reach nothing but the `bridge`.
        """
        if not self.bubblewrap:
            return Launch([*_LIMITED, *command], environment, working_folder)
        # A later mount covers an earlier one, so what is shown comes after what is hidden, and the trial's own last.
        options = [
            *("--ro-bind", "/", "/"),
            *("--dev", "/dev"),
            *("--proc", "/proc"),
            *("--tmpfs", str(_TEMPORARY)),
            *_mounts("--ro-bind-try", self.kept),
            *(part for folder in self.hidden for part in ("--tmpfs", str(folder))),
            *_mounts("--ro-bind-try", self.shown),
            # Each by itself: a mount point can neither be renamed nor replaced by a link to elsewhere.
            *_mounts("--bind-try", writable),
            *_mounts("--ro-bind-try", readable),
            *("--chdir", str(working_folder)),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"),
            *("--cap-drop", "ALL"),  # Else root could take all of this back
        ]
        across: list[str] = []
        if not network:
            options.append("--unshare-net")
            resolver = _RESOLVER.resolve()
            if resolver.is_file():
                options += ["--ro-bind", str(_NO_RESOLVER), str(resolver)]
        if not network and bridge:
            socket = bridge.socket.resolve()
            options += _mounts("--ro-bind", [_BRIDGE_PROGRAM, socket])  # They may lie in what is hidden
            across = [sys.executable, "-I", "-S", str(_BRIDGE_PROGRAM), str(bridge.port), str(socket)]
        # Bubblewrap itself has none of the variables: LD_PRELOAD among them would load the agent's code outside.
        variables = [word for name, value in environment.items() for word in ("--setenv", name, value)]
        return Launch([self.bubblewrap, *options, "--", *across, *_LIMITED, *command], {}, Path("/"), variables)

    def reveal(self, folders: Sequence[Path]) -> "Isolation":
        """Return the same isolation that lets these folders be read."""
        resolved = [folder.resolve() for folder in folders]
        # In a /tmp of their own commands see nothing that is not put there.
        kept = [folder for folder in resolved if folder != _TEMPORARY and folder.is_relative_to(_TEMPORARY)]
        hidden = tuple(folder for folder in self.hidden if folder not in resolved)
        # What lies inside a folder that stays hidden, as a run's own copy of the suites does.
        inner = [folder for folder in resolved if any(folder.is_relative_to(outer) for outer in hidden)]
        return replace(self, hidden=hidden, kept=(*self.kept, *kept), shown=(*self.shown, *inner))


def _mounts(option: str, paths: Iterable[Path]) -> list[str]:
    return [part for path in paths for part in (option, str(path), str(path))]


def best_isolation(hidden: Sequence[Path], *, run_folder: Path, bridge: Bridge | None = None) -> Isolation:
    """Return the strongest isolation that works on this machine, tried with a harmless command. No command may see the
    `hidden` folders; trials lie in `run_folder`. Raise `MeasurementError` if only the `bridge`, whose server must run,
    does not work.

    What has worked once is not tried again by the same process, which may run many batches of a run.
    """
    program = shutil.which("bwrap")
    if program is None:
        return Isolation(why_not="bubblewrap is not installed")
    # Beside its own trials a gate hides those of all others.
    folders = [_RUNTIME, *private_roots(), *(folder.resolve() for folder in hidden), run_folder]
    needed = [path for path in _needed() if path.is_relative_to(_RUNTIME)]
    isolation = Isolation(
        str(Path(program).absolute()),
        hidden=tuple(folder for folder in folders if folder.is_dir() and not folder.is_symlink()),
        kept=_kept_entries(run_folder),
        shown=(*(_RUNTIME / name for name in _SHOWN_OF_RUNTIME), *needed),
    )
    trouble = _trouble(isolation, run_folder, bridge)
    if trouble is None:
        return isolation
    if bridge is not None and _trouble(isolation, run_folder, None) is None:
        raise MeasurementError(f"agents under bubblewrap cannot reach their models: {trouble}")
    return Isolation(why_not=f"bubblewrap does not work here ({trouble})")


def refuse_unisolated(isolation: Isolation) -> None:
    """Raise `UsageError` for a process group, which keeps nothing apart."""
    if not isolation.bubblewrap:
        raise UsageError(
            f"gates.yaml demands isolation, and {isolation.why_not}: nothing was run; {ISOLATION_REMEDY}. For an agent "
            "that you trust, say `isolation: preferred` in gates.yaml"
        )


def _trouble(isolation: Isolation, run_folder: Path, bridge: Bridge | None) -> str | None:
    """Return what a harmless command complains of; `None` if it works."""
    # Without what is new for each run: these names are those of the run's own folders.
    of_run = {run_folder, *([bridge.socket.parent.resolve()] if bridge else [])}
    lasting = isolation.bubblewrap, frozenset(isolation.hidden) - of_run, bridge is not None
    if lasting in _WORKED:
        return None
    launch = isolation.wrap(["true"], {}, working_folder=run_folder, network=False, bridge=bridge)
    path = {"PATH": os.environ.get("PATH", os.defpath)}
    trouble = None
    for seconds in PROBE_SECONDS:
        try:
            done = subprocess.run(launch.command, capture_output=True, timeout=seconds, check=False, env=path)
        except subprocess.TimeoutExpired:
            trouble = f"it took longer than {seconds:g} s"
        except OSError as error:
            trouble = str(error)
        else:
            if done.returncode == 0:
                _WORKED.add(lasting)
                return None
            trouble = done.stderr.decode("utf-8", "replace").strip()[-500:]
    return trouble


def _kept_entries(run_folder: Path) -> tuple[Path, ...]:
    """Return what lies in /tmp now, where agents and whole checkouts may live: readable beside a writable /tmp."""
    try:
        entries = sorted(_TEMPORARY.iterdir())
    except OSError:
        return ()
    if len(entries) > _MAX_KEPT:
        entries = [entry for entry in entries if any(path.is_relative_to(entry) for path in _needed())]
    closed = [entry for entry in entries if any(fnmatchcase(entry.name, pattern) for pattern in (*_DOORS, *_PRIVATE))]
    return tuple(
        entry for entry in entries if not (entry in (run_folder, *closed) or entry.is_symlink() or entry.is_socket())
    )


def _needed() -> list[Path]:
    """Return where passgate itself, its Python and the active environment lie."""
    active = active_environment()
    return [Path.cwd(), Path(sys.prefix), Path(sys.base_prefix), *([active] if active is not None else [])]
