"""Files at a URL that fsspec knows. No bucket is created."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.storage import UnreachableError

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


class UrlStorage:
    """Files at a URL, each written as a whole, as object stores do."""

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
            content: bytes = self._call(f"read {self._url}/{name}", self._files.cat_file, self._place(name))
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        what, place = f"write {self._url}/{name}", self._place(name)
        try:
            if self._makes_folders:
                self._call(what, self._files.makedirs, place.rpartition("/")[0], exist_ok=True)
            self._call(what, self._files.pipe_file, place, content)
        except FileNotFoundError as error:
            raise StorageError(f"cannot write {self._url}/{name}: {error}: passgate creates no bucket") from error

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._call(f"remove {self._url}/{name}", self._files.rm_file, self._place(name))

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

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

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
