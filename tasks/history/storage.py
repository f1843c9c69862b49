"""Named files at one place: a local folder, or a URL that fsspec knows (`s3://...`). No bucket is created."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, close_to_others, make_private_folder, write_atomically

_Result = TypeVar("_Result")

STATE_FOLDER = Path(".passgate")
SECONDS_TO_ANSWER: Final = 30.0  # For which a run waits for a URL that it can do without
LOCATION: Final = "location"  # In the folder of a run that has a mirror: the URL
CHANGE: Final = "change"  # The folder of the change's own files, after the id of the run that is judged
PLAN: Final = "plan.json"
_LOCAL: Final = ("file://", "local://")
_EXTRAS: Final = {"s3": "s3", "s3a": "s3"}  # The extra of passgate that brings the driver of a protocol
# To make a folder there is to make a bucket or nothing at all.
_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "memory"})
# Asked again, a store answers the same.
_FINAL: Final = (PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError)
# What botocore calls an environment without keys: it cannot be imported here, where s3fs may not be there.
_WITHOUT_KEYS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError", "ParamValidationError"})
_OPTIONS: Final = {
    # Other processes write here: what this one has listed before says nothing.
    "use_listings_cache": False,
}
_S3_OPTIONS: Final = {
    # With more than one the driver asks how large a file is before it reads it: two requests for each read.
    "max_concurrency": 1,
    # By its own limits botocore waits minutes before it says that nobody answers.
    "config_kwargs": {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 2, "mode": "standard"}},
}


class UnreachableError(StorageError):
    """A place does not answer now. It may do so later."""


class RunTakenError(StorageError):
    """Another process coordinates the run."""


_ABSENT: Final = (FileNotFoundError, NotADirectoryError)


class LocalStorage:
    """Files in a folder, for their owner only; a name may have folders in it. Every method raises `StorageError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, `None` if there is none."""
        with suppress(*_ABSENT), _storage_errors(f"read {self.folder / name}", *_ABSENT):
            return (self.folder / name).read_bytes()
        return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file over what was there, whole or not at all."""
        file = self.folder / name
        try:
            make_private_folder(file.parent)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot write {file}: {error}") from error
        write_atomically(file, content, mode=PRIVATE_FILE)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with _storage_errors(f"remove {self.folder / name}"):
            (self.folder / name).unlink(missing_ok=True)

    def sizes(self) -> dict[str, int]:
        """Return the names of all files, in all folders, with their sizes in bytes."""
        with _storage_errors(f"list {self.folder}"):
            files = [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]
            return {file.relative_to(self.folder).as_posix(): file.stat().st_size for file in sorted(files)}

    def folders(self) -> list[str]:
        """Return the names of the folders at the top, sorted."""
        with suppress(*_ABSENT), _storage_errors(f"list {self.folder}", *_ABSENT):
            return sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir())
        return []

    def clear(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _storage_errors(what: str, *expected: type[OSError]) -> Iterator[None]:
    """Raise `StorageError` for every error of the file system but the expected ones."""
    try:
        yield
    except expected:
        raise
    except OSError as error:
        raise StorageError(f"cannot {what}: {error}") from error


class UrlStorage:
    """Files at a URL, as `LocalStorage`, each written as a whole. Methods also raise `UnreachableError`."""

    def __init__(self, url: str) -> None:
        """Open the URL. Raise `UsageError` if this machine has no driver for it."""
        import fsspec

        self._url = url.rstrip("/")
        protocol = self._url.partition("://")[0]
        try:
            options = {**_OPTIONS, **(_S3_OPTIONS if protocol in _EXTRAS else {})}
            files, root = fsspec.core.url_to_fs(self._url, **options)
        except ImportError as error:
            extra = _EXTRAS.get(protocol)
            remedy = f"pip install 'passgate[{extra}]'" if extra else str(error)
            raise UsageError(f"{self._url} needs a driver that is not installed: {remedy}") from error
        except Exception as error:
            raise UsageError(f"{self._url} cannot be opened: {error}") from error
        self._files: Any = files
        self._root = str(root).rstrip("/")
        self._makes_folders = protocol not in _OBJECT_STORES

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._call(f"read {self._url}/{name}", self._files.cat_file, f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        what, place = f"write {self._url}/{name}", f"{self._root}/{name}"
        try:
            if self._makes_folders:
                self._call(what, self._files.makedirs, place.rpartition("/")[0], exist_ok=True)
            self._call(what, self._files.pipe_file, place, content)
        except FileNotFoundError as error:
            raise StorageError(f"cannot write {self._url}/{name}: {error}: passgate creates no bucket") from error

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._call(f"remove {self._url}/{name}", self._files.rm_file, f"{self._root}/{name}")

    def sizes(self) -> dict[str, int]:
        try:
            found = self._call(f"list {self._url}", self._files.find, self._root, detail=True)
        except FileNotFoundError:
            return {}
        begin = f"{self._root.strip('/')}/"
        named = ((place.strip("/"), int(entry["size"] or 0)) for place, entry in sorted(found.items()))
        return {place.removeprefix(begin): size for place, size in named if place.startswith(begin)}

    def folders(self) -> list[str]:
        try:
            entries = self._call(f"list {self._url}", self._files.ls, self._root, detail=True)
        except FileNotFoundError:
            return []
        places = (str(entry["name"]).rstrip("/") for entry in entries if entry["type"] == "directory")
        return sorted(place.rpartition("/")[2] for place in places)

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return what the driver answers. Raises `FileNotFoundError`, `StorageError` and `UnreachableError`."""
        try:
            return function(*arguments, **options)
        except FileNotFoundError:
            raise
        except Exception as error:
            is_final = isinstance(error, _FINAL) or type(error).__name__ in _WITHOUT_KEYS
            problem = StorageError if is_final else UnreachableError
            raise problem(f"cannot {what}: {str(error) or type(error).__name__}") from error


Storage = LocalStorage | UrlStorage


def storage_at(location: str) -> Storage:
    """Return the storage at a folder or URL. Raises `UsageError` for a URL that this machine has no driver for."""
    # A file of this machine can be renamed, and kept from others, which fsspec's driver for them does not.
    for protocol in _LOCAL:
        if location.startswith(protocol):
            return LocalStorage(Path(location.removeprefix(protocol)))
    return UrlStorage(location) if "://" in location else LocalStorage(Path(location))


def ask(work: Callable[[], _Result], seconds: float | None = None) -> _Result:
    """Return what a function gets from a store. Raise what it raises, and `UnreachableError` if it takes longer than
    some seconds, `SECONDS_TO_ANSWER` by default: with their retries, drivers wait many minutes.
    """
    seconds = SECONDS_TO_ANSWER if seconds is None else seconds
    ended: Future[_Result] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except Exception as error:  # noqa: BLE001 - the future is the only way out of the thread
            ended.set_exception(error)

    threading.Thread(target=run, name="store", daemon=True).start()
    try:
        return ended.result(seconds)
    except TimeoutError as error:
        raise UnreachableError(f"the run store has not answered for {seconds:g} s") from error


def protect_state_folder() -> None:
    """Make the folder of the state for its owner only, with a file that keeps it out of commits."""
    if not STATE_FOLDER.is_dir():
        return
    close_to_others(STATE_FOLDER)
    ignore = STATE_FOLDER / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n", mode=PRIVATE_FILE)
