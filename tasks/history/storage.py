"""Named files at one place: a local folder, or a URL that fsspec knows (`s3://...`)."""

import os
import shutil
from pathlib import Path
from typing import Final, Protocol

from passgate.tasks.errors import StorageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, close_to_others, make_private_folder, write_atomically

STATE_FOLDER = Path(".passgate")
_LOCAL: Final = ("file://", "local://")


class UnreachableError(StorageError):
    """A place does not answer now. It may do so later."""


class Storage(Protocol):
    """Named files at one place; a name may have folders in it. Every method raises `StorageError` if the place cannot
    be used, and `UnreachableError` if it does not answer.
    """

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, `None` if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file over what was there, whole or not at all."""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

    def sizes(self) -> dict[str, int]:
        """Return the names of all files, in all folders, with their sizes in bytes."""

    def folders(self) -> list[str]:
        """Return the names of the folders at the top, sorted."""


def storage_at(location: str) -> Storage:
    """Return the storage at a folder or URL. Raises `UsageError` for a URL that this machine has no driver for."""
    # A file of this machine can be renamed, and kept from others, which fsspec's driver for them does not.
    for protocol in _LOCAL:
        if location.startswith(protocol):
            return LocalStorage(Path(location.removeprefix(protocol)))
    if "://" not in location:
        return LocalStorage(Path(location))
    from passgate.tasks.history.url_storage import UrlStorage

    return UrlStorage(location)


class LocalStorage:
    """Files in a folder, for their owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {self.folder / name}: {error}") from error

    def write(self, name: str, content: bytes) -> None:
        file = self.folder / name
        try:
            make_private_folder(file.parent)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot write {file}: {error}") from error
        write_atomically(file, content, mode=PRIVATE_FILE)

    def remove(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot remove {self.folder / name}: {error}") from error

    def sizes(self) -> dict[str, int]:
        try:
            files = [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]
            return {file.relative_to(self.folder).as_posix(): file.stat().st_size for file in sorted(files)}
        except OSError as error:
            raise StorageError(f"cannot list {self.folder}: {error}") from error

    def folders(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StorageError(f"cannot list {self.folder}: {error}") from error

    def clear(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


def protect_state_folder() -> None:
    """Make the folder of the state for its owner only, with a file that keeps it out of commits."""
    if not STATE_FOLDER.is_dir():
        return
    close_to_others(STATE_FOLDER)
    ignore = STATE_FOLDER / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n", mode=PRIVATE_FILE)
