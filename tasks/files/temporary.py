"""Temporary folders: all in one private folder of the user, each held by its process for as long as that lives.

Whether a process lives is told by a lock on its folder: the kernel gives it back however the process ends, also in
another container, where process ids mean nothing.
"""

import asyncio
import fcntl
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from passgate.tasks.errors import UsageError
from passgate.tasks.files.removal import Remains, remove_tree

# How the private folder of a user is called, in the temporary folder of the machine.
ROOT_PREFIX: Final = "passgate-user-"
BUG_PREFIX: Final = "passgate-bug-"  # how reports of bugs are called, which stay there for the user
# Where paths are short enough for a socket.
SHORT_PLACE: Final = Path("/tmp")  # noqa: S108 - the folder in it is private
_OFTEN_TEMPORARY: Final = (SHORT_PLACE, Path("/var/tmp"))  # noqa: S108
_REMEDY: Final = "name a folder that you can write to in TMPDIR"


class TemporaryFolder:
    """A folder whose name begins with a run id or another label and the id of this process, held until it is removed.

    Raises `UsageError` when it cannot be made.
    """

    def __init__(self, label: str, *, place: Path | None = None) -> None:
        root = _private_root(place or _temporary_place())
        try:
            with _locked(root):  # a sweep sees no folder that is not held yet
                name = label.replace("/", "-")  # the run of a change's own files is called RUN/change
                self.path = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-", dir=root))
                self._held = _hold(self.path)
        except OSError as error:
            raise UsageError(f"cannot make a folder in {root}: {error}: {_REMEDY}") from error

    def remove(self) -> Remains | None:
        """Remove the folder with all that is in it; what could not be removed."""
        remains = remove_tree(self.path)
        if self._held is not None:
            os.close(self._held)
        return remains


@contextmanager
def temporary_folder(label: str, *, place: Path | None = None) -> Iterator[Path]:
    """A temporary folder for as long as the context lasts. Raises `UsageError` when it cannot be made."""
    folder = TemporaryFolder(label, place=place)
    try:
        yield folder.path
    finally:
        folder.remove()


@asynccontextmanager
async def new_folder(parent: Path, prefix: str = "") -> AsyncIterator[Path]:
    """A new folder in a folder of a trial; whatever programs leave in it, its removal raises nothing.

    Raises `OSError` when it cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(remove_tree, folder))


def private_roots() -> tuple[Path, ...]:
    """The private folders of this user that are there, in every place that is usual for temporary files."""
    places = dict.fromkeys([_temporary_place(), *_OFTEN_TEMPORARY])
    roots = dict.fromkeys(_root_in(place) for place in places)
    return tuple(root for root in roots if root.is_dir() and not root.is_symlink())


def sweep() -> list[Remains]:
    """Remove the folders of processes that have ended without removing them; what could not be removed."""
    return [remains for root in private_roots() for remains in _swept(root)]


def _swept(root: Path) -> Iterator[Remains]:
    try:
        folders = sorted(entry for entry in root.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError:
        return
    for folder in folders:
        held = _hold_if_stale(root, folder)
        if held is not None:
            remains = remove_tree(folder)
            os.close(held)
            if remains is not None:
                yield remains


def _hold_if_stale(root: Path, folder: Path) -> int | None:
    """Hold a folder that nobody holds; `None` where somebody does, or where that cannot be known."""
    try:
        with _locked(root):
            return _hold(folder)
    except OSError:  # its process has removed it
        return None


def _hold(folder: Path) -> int | None:
    """Lock a folder for this process; `None` where another process has it, or where the file system has no locks, as
    some of networks have none. Raises `OSError` for a folder that is not there.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # without locks nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _private_root(place: Path) -> Path:
    """The private folder of this user in a place, made where it is not there yet. Raises `UsageError`."""
    root = _root_in(place)
    try:
        root.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise UsageError(f"{root} is no folder of yours: {_REMEDY}")
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
