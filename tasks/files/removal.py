"""Remove trees that an agent may have left: of any depth and size, without permissions, with anything in them.

`shutil.rmtree` calls itself for each level, and paths longer than 4096 bytes cannot be opened. Here every call names an
entry of the folder that is open, and one folder is open at a time.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class Remains:
    """What of a tree could not be removed."""

    folder: Path  # the root of the tree
    name: str  # an entry that is in the way
    reason: str

    def __str__(self) -> str:
        name = self.name if len(self.name) <= 100 else f"{self.name[:100]}..."
        return f"cannot remove {self.folder}: {name}: {self.reason}; remove it yourself"


def remove_tree(folder: Path) -> Remains | None:
    """Remove a folder with everything in it. Return what could not be removed, or `None`.

    Follow no link, enter no other file system and raise no `OSError`. Whatever is in the way, the rest is removed.
    """
    try:
        parent = os.open(folder.parent, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Remains(folder, folder.name, error.strerror or str(error))
    removal = _Removal(folder, parent)
    removal.run()
    return removal.remains


@dataclass
class _Level:
    """An open folder, or one above it."""

    name: str
    identity: tuple[int, int]
    subfolders: list[str]


class _Removal:
    """A walk through a tree, deepest folders first, with one folder open."""

    def __init__(self, folder: Path, parent: int) -> None:
        self._folder = folder
        self._open = parent
        self._levels = [_Level("", _identity(parent), [folder.name])]
        self._file_system: str | None = None
        self.remains: Remains | None = None

    def run(self) -> None:
        try:
            while len(self._levels) > 1 or self._levels[0].subfolders:
                if self._levels[-1].subfolders:
                    self._enter(self._levels[-1].subfolders.pop())
                else:
                    self._leave()
        except OSError as error:
            self._keep(self._levels[-1].name, error)
        finally:
            os.close(self._open)

    def _enter(self, name: str) -> None:
        """Open a folder of the open one and remove its files."""
        try:
            mode = os.stat(name, dir_fd=self._open, follow_symlinks=False).st_mode
            # An agent may have taken the permissions from a folder of its own.
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                with suppress(OSError):
                    os.chmod(name, stat.S_IRWXU, dir_fd=self._open)
            inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._open)
        except OSError as error:
            self._remove_entry(name, error)  # it may be a file by now, or an empty folder
            return
        file_system = _file_system(inner)
        self._file_system = self._file_system or file_system
        if file_system != self._file_system:
            os.close(inner)
            self._keep(name, "another file system is mounted there")
            return
        os.close(self._open)
        self._open = inner
        removed = True
        while removed:  # an entry may be passed over while others are removed
            removed, subfolders = False, list[str]()
            with os.scandir(inner) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        subfolders.append(entry.name)
                    else:
                        removed |= self._remove_entry(entry.name)
        self._levels.append(_Level(name, _identity(inner), subfolders))

    def _leave(self) -> None:
        """Go back to the folder above and remove the one that was open, which is empty now.

        Raise `OSError` if somebody has moved it meanwhile: what lies above it then is not ours.
        """
        name, above = self._levels.pop().name, self._levels[-1]
        outer = os.open("..", _DIRECTORY, dir_fd=self._open)
        os.close(self._open)
        self._open = outer
        if _identity(outer) != above.identity:
            raise OSError(0, "it was moved while it was removed")
        self._remove_entry(name)

    def _remove_entry(self, name: str, reason: OSError | None = None) -> bool:
        """Remove a file or an empty folder. Return whether it is gone; if not, keep `reason` or the failure."""
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=self._open, follow_symlinks=False).st_mode):
                os.rmdir(name, dir_fd=self._open)
            else:
                os.unlink(name, dir_fd=self._open)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._keep(name, reason or error)
            return False
        return True

    def _keep(self, name: str, reason: OSError | str) -> None:
        # Only the first thing in the way: the folders that it lies in are in the way because of it.
        text = reason if isinstance(reason, str) else reason.strerror or str(reason)
        self.remains = self.remains or Remains(self._folder, name, text)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _file_system(descriptor: int) -> str:
    """Return the mount that a folder belongs to. Only Linux knows it; a bind mount shares the device of its source."""
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    except OSError:
        return str(os.fstat(descriptor).st_dev)
    return next((line for line in lines if line.startswith("mnt_id:")), "")
