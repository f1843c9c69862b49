"""Pack folders as one file, in the same way every time, and unpack them only into the folder that is named."""

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from passgate.tasks.errors import StorageError, UsageError

MOST_BYTES: Final = 1024**3  # The most that an archive's files may have together
_MOST_FILES: Final = 200_000


def pack(root: Path, folders: Iterable[Path], without: Collection[str]) -> bytes:
    """Return files and folders below `root` as a gzipped tar archive, which is the same for the same files.

    Leave out names in `without` wherever they are. Raise `UsageError` for what cannot be packed.
    """
    content, size = io.BytesIO(), 0
    try:
        # A date in the head of the file would be another one every time.
        with (
            gzip.GzipFile(fileobj=content, mode="wb", mtime=0, compresslevel=6) as packing,
            tarfile.open(fileobj=packing, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            paths = {path for folder in folders for path in _walk(folder, without)}
            for number, path in enumerate(sorted(paths)):
                size += path.lstat().st_size
                if size > MOST_BYTES or number > _MOST_FILES:
                    raise UsageError(f"{root} has too many files to be sent to other machines (at most 1 GiB)")
                _add(archive, root, path)
    except OSError as error:
        raise UsageError(f"cannot pack {root}: {error}") from error
    return content.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Unpack an archive of `pack` into a folder that exists. Raise `StorageError`."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            archive.extractall(folder, filter="data")
    except (OSError, tarfile.TarError, EOFError) as error:
        raise StorageError(f"cannot unpack the files of the run into {folder}: {error}") from error


def _walk(place: Path, without: Collection[str]) -> Iterator[Path]:
    if place.is_symlink() or not place.is_dir():
        if place.is_symlink() or place.is_file():
            yield place
        return
    yield place
    for folder, inner, files in os.walk(place):
        inner[:] = [name for name in inner if name not in without]
        yield from (Path(folder, name) for name in (*inner, *files) if name not in without)


def _add(archive: tarfile.TarFile, root: Path, path: Path) -> None:
    leads_out = path.is_symlink() and not path.resolve().is_relative_to(root.resolve())
    if leads_out and path.is_dir():
        raise UsageError(f"{path} is a link to a folder that no other machine has: put the folder in its place")
    source = path.resolve() if leads_out else path
    entry = archive.gettarinfo(source, arcname=path.relative_to(root).as_posix())
    if entry is None or not (entry.isfile() or entry.isdir() or entry.issym()):
        return  # no task is made of a socket or a pipe
    if entry.issym() and entry.linkname.startswith("/"):
        entry.linkname = os.path.relpath(path.resolve(), path.parent.resolve())
    if entry.islnk():
        entry.type, entry.size = tarfile.REGTYPE, source.stat().st_size
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
    entry.mode = stat.S_IMODE(entry.mode)
    if not entry.isfile():
        archive.addfile(entry)
        return
    with source.open("rb") as stream:
        archive.addfile(entry, stream)
