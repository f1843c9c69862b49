"""Files at a URL that fsspec knows. Outages are ridden out for a while; no bucket is created."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.storage import Listing

T = TypeVar("T")

SECONDS_OF_OUTAGE: Final = 120.0  # How long an operation is tried again while a store does not answer
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_AT_ONCE: Final = 200  # Objects that are asked for together
_EXTRAS: Final = {"s3": "s3", "s3a": "s3"}  # The extra of passgate that brings the driver of a protocol
# To make a folder there is to make a bucket or nothing at all.
_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "memory"})
# Asked again, a store answers the same.
_FINAL: Final = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError)
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


class UrlStorage:
    """Files at a URL. A file there is replaced as a whole, as object stores do."""

    def __init__(self, url: str, files: Any, root: str, *, retry_seconds: float = SECONDS_OF_OUTAGE) -> None:
        """`files` is a file system of fsspec and `root` the URL's path in it; `retry_seconds` is in seconds."""
        self._url, self._files, self._root, self._retry_seconds = url, files, root, retry_seconds
        self._makes_folders = url.partition("://")[0] not in _OBJECT_STORES

    @classmethod
    def at(cls, url: str, *, retry_seconds: float = SECONDS_OF_OUTAGE) -> "UrlStorage":
        """The storage at a URL. Raises `UsageError` where this machine has no driver for it."""
        import fsspec

        url = url.rstrip("/")
        protocol = url.partition("://")[0]
        try:
            options = {**_OPTIONS, **(_S3_OPTIONS if protocol in _EXTRAS else {})}
            files, root = fsspec.core.url_to_fs(url, **options)
        except ImportError as error:
            extra = _EXTRAS.get(protocol)
            remedy = f"pip install 'passgate[{extra}]'" if extra else str(error)
            raise UsageError(f"{url} needs a driver that is not installed: {remedy}") from error
        except Exception as error:
            raise UsageError(f"{url} cannot be opened: {error}") from error
        return cls(url, files, str(root).rstrip("/"), retry_seconds=retry_seconds)

    def without_retries(self) -> "UrlStorage":
        """The same place, which answers at once or is not there."""
        return UrlStorage(self._url, self._files, self._root, retry_seconds=0.0)

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        def asked() -> bytes:
            content: bytes = self._files.cat_file(self._place(name), start=start or None, end=end)
            return content

        return self._unless_missing(f"read {self._url}/{name}", asked)

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for some in _groups(names):
            yield from self._read_some(some)

    def _read_some(self, names: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        def asked() -> dict[str, bytes | Exception]:
            places = [self._place(name) for name in names]
            found: dict[str, bytes | Exception] = self._files.cat(places, on_error="return")
            troubles = [one for one in found.values() if isinstance(one, Exception)]
            for trouble in troubles:
                if not isinstance(trouble, FileNotFoundError):
                    raise trouble
            return found

        # `cat` names what it gives as the driver likes it, in the order that was asked for.
        found = self._ridden_out(f"read {self._url}", asked)
        by_name = {place.rpartition(f"{self._root}/")[2]: content for place, content in found.items()}
        for name in names:
            content = by_name[name]
            if not isinstance(content, Exception):
                yield name, content

    def size(self, name: str) -> int | None:
        def asked() -> int | None:
            found: int | None = self._files.size(self._place(name))
            return found

        return self._unless_missing(f"read {self._url}/{name}", asked)

    def write(self, name: str, content: bytes) -> None:
        self._ridden_out(f"write {self._url}/{name}", lambda: self._put(name, content))

    def create(self, name: str, content: bytes) -> bool:
        created = self._ridden_out(f"write {self._url}/{name}", lambda: self._put_new(name, content))
        # A request that was answered too late has created the file all the same, and some drivers know no exclusive
        # write: who has won stands there.
        return created or self.read(name) == content

    def remove(self, names: Iterable[str]) -> None:
        for some in _groups(names):
            places = [self._place(name) for name in some]
            self._ridden_out(f"remove files of {self._url}", partial(self._remove, places))

    def listing(self, folder: str = "") -> Listing:
        place = self._place(folder) if folder else self._root
        entries = self._unless_missing(f"list {self._url}/{folder}", lambda: self._entries(place)) or []
        named = sorted((str(entry["name"]).rstrip("/").rpartition("/")[2], entry) for entry in entries)
        is_folder = {name: entry["type"] == "directory" for name, entry in named}
        files = {name: int(entry["size"] or 0) for name, entry in named if not is_folder[name]}
        return Listing(files, tuple(name for name, _ in named if is_folder[name]))

    def clear(self) -> None:
        self._unless_missing(f"remove {self._url}", lambda: self._files.rm(self._root, recursive=True))

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _put(self, name: str, content: bytes) -> None:
        self._make_folder_of(name)
        self._files.pipe_file(self._place(name), content)

    def _put_new(self, name: str, content: bytes) -> bool:
        self._make_folder_of(name)
        if self._files.exists(self._place(name)):
            return False
        try:
            self._files.pipe_file(self._place(name), content, mode="create")
        except FileExistsError:
            return False
        except Exception as error:
            if _is_conflict(error):
                return False
            raise
        return True

    def _remove(self, places: list[str]) -> None:
        try:
            self._files.rm(places)  # S3 takes many names in one request
        except FileNotFoundError:
            for place in places:
                with suppress(FileNotFoundError):
                    self._files.rm_file(place)

    def _entries(self, place: str) -> list[dict[str, Any]]:
        with suppress(AttributeError):
            self._files.invalidate_cache(place)
        entries: list[dict[str, Any]] = self._files.ls(place, detail=True)
        return [entry for entry in entries if str(entry["name"]).rstrip("/") != place.rstrip("/")]

    def _make_folder_of(self, name: str) -> None:
        if self._makes_folders:
            self._files.makedirs(self._place(name).rpartition("/")[0], exist_ok=True)

    def _unless_missing(self, what: str, ask: Callable[[], T]) -> T | None:
        """What the store answers; `None` where it has nothing of the name."""
        try:
            return self._ridden_out(what, ask, missing_is_known=True)
        except FileNotFoundError:
            return None

    def _ridden_out(self, what: str, ask: Callable[[], T], *, missing_is_known: bool = False) -> T:
        """What the store answers, asked again while it does not. Raises `StorageError`."""
        deadline, pause = time.monotonic() + self._retry_seconds, _FIRST_PAUSE
        while True:
            try:
                return ask()
            except FileNotFoundError as error:
                if missing_is_known:
                    raise
                raise StorageError(f"cannot {what}: {_said(error)}: passgate creates no bucket") from error
            except Exception as error:
                if _is_final(error) or time.monotonic() + pause > deadline:
                    raise StorageError(f"cannot {what}: {_said(error)}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _is_final(error: Exception) -> bool:
    return isinstance(error, _FINAL) or type(error).__name__ in _WITHOUT_KEYS


def _is_conflict(error: Exception) -> bool:
    """Whether an error of a driver says that the file is there: S3 calls that a failed precondition."""
    text = f"{type(error).__name__} {error}"
    return any(sign in text for sign in ("PreconditionFailed", "Precondition", "ConditionalRequestConflict"))


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _groups(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(names)
    while some := tuple(islice(rest, _AT_ONCE)):
        yield some
