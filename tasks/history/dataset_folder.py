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
        self.location = location
        self.files, self.root = _file_system(location)
        # A history elsewhere may be shared: its permissions are those that its owner chose.
        self._is_private = _SCHEME not in location and Path(self.root).is_relative_to(STATE_FOLDER.absolute())

    @property
    def path(self) -> Path | None:
        """Where it lies on this machine; `None` for one that lies elsewhere."""
        return Path(self.root) if _is_of_this_machine(self.files) else None

    def has_folder(self, name: str) -> bool:
        """Whether there is a folder of this name."""
        return self._type(name) is fs.FileType.Directory

    def names(self, folder: str) -> Iterator[str]:
        """The names of the files in a folder; none where there is no folder. Raises `OSError`."""
        with suppress(FileNotFoundError):
            for info in self.files.get_file_info(fs.FileSelector(self.place(folder), allow_not_found=True)):
                if info.type is fs.FileType.File:
                    yield info.base_name

    def place(self, name: str) -> str:
        """The path of a name in the file system."""
        return f"{self.root}/{name}"

    def read(self, name: str) -> bytes | None:
        """What a file holds; `None` where there is none. Raises `OSError`."""
        try:
            with self.files.open_input_stream(self.place(name)) as stream:
                content: bytes = stream.read()
                return content
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file at once. Raises `OSError`."""
        self.make(name.rpartition("/")[0])
        with self.files.open_output_stream(self.place(name)) as stream:
            stream.write(content)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a file under a temporary name and rename it, so that no reader sees half of it. Raises `OSError`."""
        folder, _, file = name.rpartition("/")
        unfinished = self.place(f"{folder}/.{file}.unfinished")
        self.make(folder)
        pq.write_table(table, unfinished, filesystem=self.files, compression="zstd", write_page_checksum=True)
        if self._is_private:
            Path(unfinished).chmod(PRIVATE_FILE)
        self.files.move(unfinished, self.place(name))

    def remove(self, name: str) -> None:
        """Remove a file, where it is there. Raises `OSError`."""
        if self._type(name) is not fs.FileType.NotFound:
            with suppress(FileNotFoundError):  # somebody else was faster
                self.files.delete_file(self.place(name))

    def refuse_unwritable(self, folder: str) -> None:
        """Write and remove an empty file. Raises what the driver raises when that cannot be done."""
        probe = f"{folder}/.probe-{secrets.token_hex(8)}"
        self.write(probe, b"")
        self.files.delete_file(self.place(probe))

    def make(self, folder: str) -> None:
        """Make a folder, where it is not there yet. Raises `OSError`."""
        if self._is_private:
            make_private_folder(Path(self.place(folder)))
        else:
            self.files.create_dir(self.place(folder), recursive=True)

    def _type(self, name: str) -> fs.FileType:
        return self.files.get_file_info(self.place(name)).type


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
        return _fsspec_file_system(location)
    return files, path.rstrip("/")


def _fsspec_file_system(location: str) -> tuple[fs.FileSystem, str]:
    import fsspec

    try:
        files, path = fsspec.core.url_to_fs(location)
    except (ValueError, ImportError) as error:
        raise StorageError(f"the history {location} cannot be opened: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(files)), str(path).rstrip("/")
