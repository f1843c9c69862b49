"""Read a dataset of which some files may be broken, foreign, forbidden, or gone by the time they are read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from passgate.tasks.history.columns import arrow_schema

FILE: Final = "__filename"  # The column with the file that a row is from: Arrow's own name for it
_PLACE: Final = re.compile(r"suite=(?P<suite>[a-z_]+)/day=(?P<day>\d{4}-\d\d-\d\d)/[^/]+\.parquet")
"""Where the files of trials lie."""
_NEEDED: Final = frozenset(
    {
        *("schema_version", "run_id", "gate", "task_id", "task_digest", "grader_digest", "agent"),
        *("trial", "k", "metric", "status", "started_at"),
    }
)  # Columns that every version of passgate has written
_FORMAT: Final = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
_UNREADABLE: Final = (OSError, pa.ArrowException, UnicodeDecodeError)
_MOST_NAMED: Final = 3
_LONGEST_REASON: Final = 200


class SkippedFile(NamedTuple):
    """A file that is not read."""

    name: str  # Its path below the dataset
    reason: str


class _File(NamedTuple):
    name: str
    fragment: ds.ParquetFileFragment


class _Listing(NamedTuple):
    files: list[_File]
    strays: list[SkippedFile]


def read_trials(
    files: fs.FileSystem, root: str, columns: Sequence[str] | None, condition: ds.Expression | None
) -> tuple[pa.Table, list[SkippedFile]]:
    """The rows of all files that are trials of passgate and fit the condition, and the files that are not read.

    Names that begin with `.` or `_` are nobody's trials. Raises `OSError` when the folder itself cannot be read.
    """
    listing = _listed(files, root)
    checked = _checked(_pruned(listing.files, condition))
    good = [file for file, reason in checked if not reason]
    bad = [SkippedFile(file.name, reason) for file, reason in checked if reason]
    try:
        return _table(good, columns, condition), [*listing.strays, *bad]
    except _UNREADABLE:
        table, broken = _one_by_one(good, columns, condition)
        return table, [*listing.strays, *bad, *broken]


def empty_table(columns: Sequence[str] | None) -> pa.Table:
    """No rows of these columns, or of all that the schema has."""
    empty = arrow_schema().empty_table()
    return empty if columns is None else empty.append_column(FILE, pa.array([], pa.string())).select(list(columns))


def skipped_text(skipped: Sequence[SkippedFile]) -> str:
    """How many files are skipped, the first of them, and what to do about them."""
    count = "1 file is skipped" if len(skipped) == 1 else f"{len(skipped)} files are skipped"
    named = [f"{file.name} ({file.reason})" for file in skipped[:_MOST_NAMED]]
    more = [f"{len(skipped) - _MOST_NAMED} more"] if len(skipped) > _MOST_NAMED else []
    return f"{count}: {', '.join([*named, *more])}; restore or remove what is skipped"


def _listed(files: fs.FileSystem, root: str) -> _Listing:
    listing = _Listing([], [])
    for info in _entries(files, root, listing.strays):
        name = info.path[len(root) :].strip("/")
        place = _PLACE.fullmatch(name)
        if any(part.startswith((".", "_")) for part in name.split("/")):
            continue
        if info.type == fs.FileType.Directory and not name.endswith(".parquet"):
            continue
        if place is None:
            listing.strays.append(SkippedFile(name, "none of passgate's"))
        elif info.type != fs.FileType.File:
            listing.strays.append(SkippedFile(name, "no file"))
        else:
            partition = (ds.field("suite") == place["suite"]) & (ds.field("day") == place["day"])
            listing.files.append(_File(name, _FORMAT.make_fragment(info.path, files, partition)))
    return listing


def _entries(files: fs.FileSystem, root: str, strays: list[SkippedFile]) -> Iterable[fs.FileInfo]:
    """Everything in the folder. One request lists it all, unless a folder of it cannot be read."""
    try:
        return list(files.get_file_info(fs.FileSelector(root, recursive=True)))
    except OSError:
        return _readable_entries(files, root, root, strays)


def _readable_entries(files: fs.FileSystem, root: str, folder: str, strays: list[SkippedFile]) -> Iterator[fs.FileInfo]:
    try:
        infos = files.get_file_info(fs.FileSelector(folder))
    except OSError as error:
        if folder == root:
            raise
        strays.append(SkippedFile(folder[len(root) :].strip("/"), _reason(error)))
        return
    for info in infos:
        yield info
        if info.type == fs.FileType.Directory:
            yield from _readable_entries(files, root, info.path, strays)


def _pruned(files: Sequence[_File], condition: ds.Expression | None) -> list[_File]:
    """The files whose suite and day fit a condition."""
    wanted = {fragment.path for fragment in _dataset(files).get_fragments(condition)} if files else set()
    return [file for file in files if file.fragment.path in wanted]


def _checked(files: Sequence[_File]) -> list[tuple[_File, str]]:
    """Each file with what is wrong with it: empty when it has the columns of trials."""
    with ThreadPoolExecutor() as threads:  # a file at a URL takes the time of a request
        return list(zip(files, threads.map(_trouble, files), strict=True))


def _trouble(file: _File) -> str:
    try:
        lacking = _NEEDED.difference(file.fragment.physical_schema.names)
    except _UNREADABLE as error:
        return _reason(error)
    return f"none of passgate's: it has no column {min(lacking)}" if lacking else ""


def _table(files: Sequence[_File], columns: Sequence[str] | None, condition: ds.Expression | None) -> pa.Table:
    if not files:
        return empty_table(columns)
    table = _dataset(files).to_table(None if columns is None else list(columns), filter=condition)
    table.validate(full=True)
    return table


def _one_by_one(
    files: Sequence[_File], columns: Sequence[str] | None, condition: ds.Expression | None
) -> tuple[pa.Table, list[SkippedFile]]:
    tables, broken = [_table([], columns, condition)], []
    for file in files:
        try:
            tables.append(_table([file], columns, condition))
        except _UNREADABLE as error:
            broken.append(SkippedFile(file.name, _reason(error)))
    return pa.concat_tables(tables), broken


def _dataset(files: Sequence[_File]) -> ds.FileSystemDataset:
    return ds.FileSystemDataset([file.fragment for file in files], arrow_schema(), _FORMAT)


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_REASON]
