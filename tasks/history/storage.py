"""Where the files of a run are kept: a local folder, or a URL that fsspec knows (`s3://...`)."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from passgate.tasks.errors import StorageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, close_to_others, make_private_folder, write_atomically

STATE_FOLDER = Path(".passgate")
_LOCAL: Final = ("file://", "local://")


@dataclass(frozen=True)
class Listing:
    """What lies directly in a folder."""

    files: Mapping[str, int]  # Their names in order, with their sizes in bytes
    folders: tuple[str, ...] = ()


class Storage(Protocol):
    """Named files at one place; a name may have folders in it. Every method raises `StorageError` where the place
    cannot be used.
    """

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """What a file holds from a byte on, up to another one; `None` where there is none."""

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """What several files hold, each with its name, in their order; those that are not there are left out."""

    def size(self, name: str) -> int | None:
        """How many bytes a file has; `None` where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file over what was there, whole or not at all."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; whether there was none. Of several who try, one succeeds."""

    def remove(self, names: Iterable[str]) -> None:
        """Take files away, those that are there."""

    def listing(self, folder: str = "") -> Listing:
        """What lies in a folder now; nothing where there is none."""

    def clear(self) -> None:
        """Take everything away."""


def storage_at(location: str) -> Storage:
    """The storage at a folder or URL. Raises `UsageError` for a URL of a kind that this machine has no driver for."""
    # A file of this machine can be renamed and locked, which fsspec's driver for them does not.
    for protocol in _LOCAL:
        if location.startswith(protocol):
            return LocalStorage(Path(location.removeprefix(protocol)))
    if "://" not in location:
        return LocalStorage(Path(location))
    from passgate.tasks.history.url_storage import UrlStorage

    return UrlStorage.at(location)


class LocalStorage:
    """Files in a folder, for their owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(start)
                return file.read(-1 if end is None else end - start)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {self.folder / name}: {error}") from error

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            content = self.read(name)
            if content is not None:
                yield name, content

    def size(self, name: str) -> int | None:
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        self._make_folder_of(name)
        write_atomically(self.folder / name, content, mode=PRIVATE_FILE)

    def create(self, name: str, content: bytes) -> bool:
        self._make_folder_of(name)
        file = self.folder / name
        unfinished = file.with_name(f".{file.name}.{os.getpid()}.new")
        try:
            with open(unfinished, "wb", opener=partial(os.open, mode=PRIVATE_FILE)) as stream:
                stream.write(content)
            file.hardlink_to(unfinished)
        except FileExistsError:
            return False
        except OSError as error:
            raise StorageError(f"cannot write {file}: {error}") from error
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        return True

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                (self.folder / name).unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"cannot remove {self.folder / name}: {error}") from error

    def listing(self, folder: str = "") -> Listing:
        try:
            entries = sorted((self.folder / folder).iterdir())
            files = {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
            return Listing(files, tuple(entry.name for entry in entries if entry.is_dir()))
        except (FileNotFoundError, NotADirectoryError):
            return Listing({})
        except OSError as error:
            raise StorageError(f"cannot list {self.folder / folder}: {error}") from error

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_folder_of(self, name: str) -> None:
        try:
            make_private_folder((self.folder / name).parent)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot write {self.folder / name}: {error}") from error


def protect_state_folder() -> None:
    """What runs leave behind is for its owner only, and belongs in no commit; the folder says so itself."""
    if not STATE_FOLDER.is_dir():
        return
    close_to_others(STATE_FOLDER)
    ignore = STATE_FOLDER / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n", mode=PRIVATE_FILE)
