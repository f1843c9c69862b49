"""Where the files of a run are kept: a local folder, or a URL that fsspec knows (`s3://...`)."""

import fnmatch
import shutil
from pathlib import Path
from typing import Protocol

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, close_to_others, make_private_folder, write_atomically

STATE_FOLDER = Path(".passgate")


class Storage(Protocol):
    """Named files at one place. Every method but `size` raises `StorageError` where the place cannot be used."""

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """What a file holds from a byte on, up to another one; `None` where there is none."""

    def size(self, name: str) -> int | None:
        """How many bytes a file has; `None` where there is none, or where nobody can tell."""

    def write(self, name: str, text: str) -> None:
        """Write a file over what was there, whole or not at all."""

    def remove(self, name: str) -> None:
        """Take a file away, if it is there."""

    def names(self, pattern: str) -> list[str]:
        """The names of files that match a pattern, in their order."""

    def clear(self) -> None:
        """Take everything away."""


def storage_at(location: str) -> Storage:
    """The storage at a folder or URL. Raises `UsageError` for a URL of a kind that this machine has no driver for."""
    return UrlStorage(location) if "://" in location else LocalStorage(Path(location))


class LocalStorage:
    """Files in a folder, for their owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(start)
                return file.read(-1 if end is None else end - start)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot read {self.folder / name}: {error}") from error

    def size(self, name: str) -> int | None:
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        try:
            make_private_folder(self.folder)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot write {self.folder / name}: {error}") from error
        write_atomically(self.folder / name, text, mode=PRIVATE_FILE)

    def remove(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot remove {self.folder / name}: {error}") from error

    def names(self, pattern: str) -> list[str]:
        return sorted(entry.name for entry in self.folder.glob(pattern))

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class UrlStorage:
    """Files at a URL of fsspec. A file there is replaced as a whole, as object stores do."""

    def __init__(self, url: str) -> None:
        import fsspec

        try:
            self._files, root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise UsageError(f"the run store {url} cannot be opened: {error}") from error
        self._url, self._root = url, str(root).rstrip("/")

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        try:
            content: bytes = self._files.cat_file(self._place(name), start=start or None, end=end)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise StorageError(f"cannot read {self._url}/{name}: {error}") from error
        return content

    def size(self, name: str) -> int | None:
        try:
            found: int | None = self._files.size(self._place(name))
        except Exception:  # noqa: BLE001 - drivers of fsspec have errors of their own
            return None
        return found

    def write(self, name: str, text: str) -> None:
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(self._place(name), text.encode("utf-8", "surrogatepass"))
        except Exception as error:
            raise StorageError(f"cannot write {self._url}/{name}: {error}") from error

    def remove(self, name: str) -> None:
        try:
            if self._files.exists(self._place(name)):
                self._files.rm_file(self._place(name))
        except Exception as error:
            raise StorageError(f"cannot remove {self._url}/{name}: {error}") from error

    def names(self, pattern: str) -> list[str]:
        try:
            # A driver may have cached the listing, and other processes write here.
            self._files.invalidate_cache(self._root)
            places = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise StorageError(f"cannot list {self._url}: {error}") from error
        return sorted(fnmatch.filter((str(place).rstrip("/").rpartition("/")[2] for place in places), pattern))

    def clear(self) -> None:
        try:
            self._files.rm(self._root, recursive=True)
        except FileNotFoundError:
            return
        except Exception as error:
            raise StorageError(f"cannot remove {self._url}: {error}") from error

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"


def protect_state_folder() -> None:
    """What runs leave behind is for its owner only, and belongs in no commit; the folder says so itself."""
    if not STATE_FOLDER.is_dir():
        return
    close_to_others(STATE_FOLDER)
    ignore = STATE_FOLDER / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n", mode=PRIVATE_FILE)
