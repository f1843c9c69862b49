"""Temporary folders: all in one private folder of the user, each locked by its process for as long as that lives.

A lock on its folder shows whether a process lives: the kernel gives it back however the process ends, also in
another container, where process ids mean nothing.
"""

import asyncio
import fcntl
import os
import signal
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from passgate.tasks.errors import UsageError
from passgate.tasks.files.removal import Remains, remove_tree

ROOT_PREFIX: Final = "passgate-user-"
"""The beginning of the name of a user's private folder, in the temporary folder of the machine."""
BUG_PREFIX: Final = "passgate-bug-"
"""The beginning of the names of bug reports, which stay there for the user."""
# Where paths are short enough for a socket.
SHORT_PLACE: Final = Path("/tmp")  # noqa: S108 - the folder in it is private
_OFTEN_TEMPORARY: Final = (SHORT_PLACE, Path("/var/tmp"))  # noqa: S108
_REMEDY: Final = "name a folder that you can write to in TMPDIR"


class TemporaryFolder:
    """A folder that its process locks until it is removed, named after `label` and the process. Raise `UsageError`."""

    def __init__(self, label: str, *, place: Path | None = None) -> None:
        root = _private_root(place or _temporary_place())
        try:
            with _lock_root(root):  # a sweep sees no folder that is not locked yet
                name = label.replace("/", "-")  # the run of a change's own files is called RUN/change
                self.path = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-", dir=root))
                self._lock = _lock_folder(self.path)
        except OSError as error:
            raise UsageError(f"cannot make a folder in {root}: {error}: {_REMEDY}") from error

    def remove(self) -> Remains | None:
        """Remove the folder with everything in it. Return what could not be removed."""
        remains = remove_tree(self.path)
        if self._lock is not None:
            os.close(self._lock)
        return remains


@contextmanager
def temporary_folder(label: str, *, place: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder and remove it after the `with` block. Raise `UsageError` if it cannot be made."""
    folder = TemporaryFolder(label, place=place)
    try:
        yield folder.path
    finally:
        folder.remove()


@asynccontextmanager
async def new_folder(parent: Path, prefix: str = "") -> AsyncIterator[Path]:
    """Make a folder in a trial's folder and remove it after the `with` block. Raise `OSError` if it cannot be made."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(remove_tree, folder))


def private_roots() -> tuple[Path, ...]:
    """Return the existing private folders of this user, in every usual place for temporary files."""
    roots = dict.fromkeys(map(_root_in, (_temporary_place(), *_OFTEN_TEMPORARY)))
    return tuple(root for root in roots if root.is_dir() and not root.is_symlink())


def sweep() -> list[Remains]:
    """End what processes that ended otherwise have left: processes of trials, then folders. Return what could not be
    removed.
    """
    left: list[Remains] = []
    for root in private_roots():
        folders: list[Path] = []
        with suppress(OSError):
            folders = sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.is_symlink())
        for folder in folders:
            lock = None
            with suppress(OSError), _lock_root(root):  # a folder that is gone was removed by its process meanwhile
                lock = _lock_folder(folder)
            if lock is None:
                continue  # its process lives, or nobody can know
            _kill_at_home_in(folder)
            remains = remove_tree(folder)
            os.close(lock)
            left += [] if remains is None else [remains]
    return left


def _kill_at_home_in(folder: Path) -> None:
    """Kill the processes whose home is in a folder: a trial without isolation can outlive everything of passgate."""
    home = b"\0HOME=" + os.fsencode(folder) + b"/"
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if home in b"\0" + (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder for this process. Return `None` if another process has the lock or the file system has no locks, as
    some network file systems. Raise `OSError` for a folder that does not exist.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _lock_root(root: Path) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # without locks nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _private_root(place: Path) -> Path:
    """Return the private folder of this user in a place, and make it if it is missing. Raise `UsageError`."""
    root = _root_in(place)
    try:
        root.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = root.lstat()
        # In a folder that everybody may write to, somebody else may have made one of this name, or a link.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise UsageError(f"{root} is not a folder of yours: {_REMEDY}")
        if stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
            root.chmod(stat.S_IRWXU)
    except OSError as error:
        raise UsageError(f"cannot make {root}: {error}: {_REMEDY}") from error
    return root


def _root_in(place: Path) -> Path:
    return place.resolve() / f"{ROOT_PREFIX}{os.getuid()}"


def _temporary_place() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise UsageError(f"{error}: {_REMEDY}") from error
