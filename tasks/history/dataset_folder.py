"""The folder or URL that a dataset lies in: files that are there whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from passgate.tasks.errors import StorageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder
from passgate.tasks.history.storage import STATE_FOLDER

_SCHEME: Final = "://"


class DatasetFolder:
    """A folder of this machine or a URL (`s3://...`, or whatever fsspec knows). Names are relative to it."""

    def __init__(self, location: str) -> None:
        self._files, self._root = _file_system(location)
        # A history elsewhere may be shared: its permissions are those that its owner chose.
        self._is_private = _SCHEME not in location and Path(self._root).is_relative_to(STATE_FOLDER.absolute())

    @property
    def path(self) -> Path | None:
        """Return where it lies on this machine, or `None` if it lies elsewhere."""
        return Path(self._root) if _is_of_this_machine(self._files) else None

    def entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield the names of all that lies in a folder at any depth, relative to it, and whether each is a file.

        Yields nothing if there is no folder. Raises `OSError`.
        """
        place = f"{self._root}/{folder}"
        for info in self._files.get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True)):
            yield info.path[len(place) :].strip("/"), info.type is fs.FileType.File

    def read(self, name: str) -> pa.Buffer:
        """Return the content of a file. Raises `OSError`."""
        with self._files.open_input_stream(f"{self._root}/{name}") as stream:
            return stream.read_buffer()

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a file under a temporary name and rename it, so that no reader sees half of it. Raises `OSError`."""
        folder, _, file = name.rpartition("/")
        unfinished = f"{self._root}/{folder}/.{file}.unfinished"
        self._make(folder)
        pq.write_table(table, unfinished, filesystem=self._files, compression="zstd", write_page_checksum=True)
        if self._is_private:
            Path(unfinished).chmod(PRIVATE_FILE)
        self._files.move(unfinished, f"{self._root}/{name}")

    def remove(self, name: str) -> None:
        """Remove a file if it is there. Raises `OSError`."""
        with suppress(FileNotFoundError):  # another process was faster
            self._files.delete_file(f"{self._root}/{name}")

    def refuse_unwritable(self, folder: str) -> None:
        """Write and remove an empty file. Raises what the driver raises if it cannot."""
        probe = f"{self._root}/{folder}/.probe-{secrets.token_hex(8)}"
        self._make(folder)
        self._files.open_output_stream(probe).close()
        self._files.delete_file(probe)

    def _make(self, folder: str) -> None:
        if self._is_private:
            make_private_folder(Path(self._root, folder))
        else:
            self._files.create_dir(f"{self._root}/{folder}", recursive=True)


def _is_of_this_machine(files: fs.FileSystem) -> bool:
    if not isinstance(files, fs.PyFileSystem):
        return isinstance(files, fs.LocalFileSystem)
    from fsspec.implementations.local import LocalFileSystem

    inner = files.handler.fs
    while hasattr(inner, "fs"):  # of a cache, say
        inner = inner.fs
    return isinstance(inner, LocalFileSystem)


def _file_system(location: str) -> tuple[fs.FileSystem, str]:
    if _SCHEME not in location:
        return fs.LocalFileSystem(), str(Path(location).absolute())
    try:
        files, path = fs.FileSystem.from_uri(location)
    except (pa.ArrowInvalid, OSError):
        import fsspec

        try:
            driver, path = fsspec.core.url_to_fs(location)
        except (ValueError, ImportError) as error:
            raise StorageError(f"the history {location} cannot be opened: {error}") from error
        files = fs.PyFileSystem(fs.FSSpecHandler(driver))
    return files, str(path).rstrip("/")
