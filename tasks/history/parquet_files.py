"""Read a dataset of which some files may be broken, foreign, forbidden, or gone by the time they are read."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from passgate.tasks.history.columns import arrow_schema, summary_schema
from passgate.tasks.history.encoding import encoded_schema

_FILE_NAME: Final = r"(?P<stem>[^/]+)\.parquet"
_CHECKED: Final = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
_PLAIN: Final = ds.ParquetFileFormat(default_fragment_scan_options=_CHECKED)
_ENCODED: Final = ds.ParquetFileFormat(
    read_options=ds.ParquetReadOptions(
        dictionary_columns=[field.name for field in summary_schema() if field.type == pa.string()]
    ),
    default_fragment_scan_options=_CHECKED,
)
_UNREADABLE: Final = (OSError, pa.ArrowException, UnicodeDecodeError)
_PATH_FIRST: Final = re.compile(r"Could not open Parquet input source '[^']*': ")
_MOST_NAMED: Final = 3
_LONGEST_REASON: Final = 200


class DatasetKind(NamedTuple):
    """A dataset: where its files lie, what columns each must have, and what columns it may have."""

    place: re.Pattern[str]  # Its groups: the stem of the name, and the columns that the path holds
    needed: frozenset[str]  # Columns that every version of passgate has written
    schema: Callable[[], pa.Schema]
    form: ds.ParquetFileFormat = _PLAIN


_OF_A_RUN: Final = ("run_id", "gate", "task_id", "task_digest", "grader_digest", "agent", "k", "metric", "started_at")
TRIALS: Final = DatasetKind(
    re.compile(rf"suite=(?P<suite>[a-z_]+)/day=(?P<day>\d{{4}}-\d\d-\d\d)/{_FILE_NAME}"),
    frozenset({"schema_version", *_OF_A_RUN, "trial", "status"}),
    arrow_schema,
)
SUMMARIES: Final = DatasetKind(
    re.compile(rf"(?P<folder>\d{{4}}-\d\d-\d\d)/{_FILE_NAME}"),
    frozenset({"summary_version", *_OF_A_RUN, "suite", "day", "outcomes"}),
    summary_schema,
)
ENCODED_SUMMARIES: Final = SUMMARIES._replace(schema=lambda: encoded_schema(summary_schema()), form=_ENCODED)
TRANSCRIPTS: Final = DatasetKind(
    re.compile(rf"day=(?P<day>\d{{4}}-\d\d-\d\d)/{_FILE_NAME}"),
    frozenset({"transcript_digest", "transcript"}),
    lambda: pa.schema([("transcript_digest", pa.string()), ("transcript", pa.string())]),
)


class SkippedFile(NamedTuple):
    """A file that is not read."""

    name: str  # Its path below the dataset
    reason: str


@dataclass(frozen=True, eq=False)
class StoredFile:
    """A file of a dataset, not opened yet."""

    name: str
    """Its path below the dataset."""
    place: dict[str, str]
    """The groups of its kind's pattern."""
    path: str
    files: fs.FileSystem
    kind: DatasetKind

    @cached_property
    def fragment(self) -> ds.ParquetFileFragment:
        """What reads it."""
        return self.kind.form.make_fragment(self.path, self.files, _partition(self.kind, self.place))


class DatasetListing(NamedTuple):
    """What lies in the folder of a dataset."""

    files: list[StoredFile]
    strays: list[SkippedFile]


class Reading(NamedTuple):
    """What came of reading files."""

    table: pa.Table
    skipped: list[SkippedFile]


def read_listed(
    listing: DatasetListing, kind: DatasetKind, columns: Sequence[str] | None, condition: ds.Expression | None
) -> Reading:
    """The rows of all files of a listing that fit the condition, and the files that are not read."""
    reading = read_files(_pruned(listing.files, kind, condition), kind, columns, condition)
    return Reading(reading.table, [*listing.strays, *reading.skipped])


def read_files(
    files: Sequence[StoredFile],
    kind: DatasetKind,
    columns: Sequence[str] | None,
    condition: ds.Expression | None = None,
) -> Reading:
    """The rows of these files that fit the condition, and those of the files that cannot be read."""
    checked = _checked(files, kind)
    good = [file for file, reason in checked if not reason]
    bad = [SkippedFile(file.name, reason) for file, reason in checked if reason]
    try:
        return Reading(_table(good, kind, columns, condition), bad)
    except _UNREADABLE:
        table, broken = _one_by_one(good, kind, columns, condition)
        return Reading(table, [*bad, *broken])


def in_portions(files: Sequence[StoredFile], most_rows: int) -> Iterator[list[StoredFile]]:
    """The files in their order, some at a time, each time with about so many rows at most; at least one file."""
    portion, rows = list[StoredFile](), 0
    for file, more in _with_rows(files):
        if portion and rows + more > most_rows:
            yield portion
            portion, rows = [], 0
        portion.append(file)
        rows += more
    if portion:
        yield portion


def _with_rows(files: Sequence[StoredFile]) -> list[tuple[StoredFile, int]]:
    with ThreadPoolExecutor() as threads:  # a file at a URL takes the time of a request
        return list(zip(files, threads.map(_rows, files), strict=True))


def _rows(file: StoredFile) -> int:
    try:
        return int(file.fragment.metadata.num_rows)
    except _UNREADABLE:
        return 0


def empty_table(kind: DatasetKind, columns: Sequence[str] | None) -> pa.Table:
    """No rows of these columns, or of all that the schema has."""
    empty = kind.schema().empty_table()
    return empty if columns is None else empty.select(list(columns))


def skipped_text(skipped: Sequence[SkippedFile]) -> str:
    """How many files are skipped, the first of them, and what to do about them."""
    count = "1 file is skipped" if len(skipped) == 1 else f"{len(skipped)} files are skipped"
    named = [f"{file.name} ({file.reason})" for file in skipped[:_MOST_NAMED]]
    more = [f"{len(skipped) - _MOST_NAMED} more"] if len(skipped) > _MOST_NAMED else []
    return f"{count}: {', '.join([*named, *more])}; restore or remove what is skipped"


def listed(files: fs.FileSystem, root: str, kind: DatasetKind) -> DatasetListing:
    """What lies in the folder of a dataset. Names that begin with `.` or `_` are no files of it.

    Raises `OSError` when the folder itself cannot be read.
    """
    listing = DatasetListing([], [])
    for info in _entries(files, root, listing.strays):
        name = info.path[len(root) :].strip("/")
        place = kind.place.fullmatch(name)
        if any(part.startswith((".", "_")) for part in name.split("/")):
            continue
        if info.type == fs.FileType.Directory and not name.endswith(".parquet"):
            continue
        if place is None:
            listing.strays.append(SkippedFile(name, "none of passgate's"))
        elif info.type != fs.FileType.File:
            listing.strays.append(SkippedFile(name, "no file"))
        else:
            listing.files.append(StoredFile(name, place.groupdict(), info.path, files, kind))
    return listing


def _partition(kind: DatasetKind, place: dict[str, str]) -> ds.Expression:
    """The columns that the path of a file holds."""
    condition = ds.scalar(value=True)
    for column in place.keys() & set(kind.schema().names):
        condition = condition & (ds.field(column) == place[column])
    return condition


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


def _pruned(files: Sequence[StoredFile], kind: DatasetKind, condition: ds.Expression | None) -> list[StoredFile]:
    """The files whose places fit a condition."""
    if condition is None:
        return list(files)
    wanted = {fragment.path for fragment in _dataset(files, kind).get_fragments(condition)} if files else set()
    return [file for file in files if file.fragment.path in wanted]


def _checked(files: Sequence[StoredFile], kind: DatasetKind) -> list[tuple[StoredFile, str]]:
    """Each file with what is wrong with it: empty when it has the columns of its kind."""
    with ThreadPoolExecutor() as threads:  # a file at a URL takes the time of a request
        return list(zip(files, threads.map(_trouble, files, repeat(kind)), strict=True))


def _trouble(file: StoredFile, kind: DatasetKind) -> str:
    try:
        lacking = kind.needed.difference(file.fragment.physical_schema.names)
    except _UNREADABLE as error:
        return _reason(error)
    return f"none of passgate's: it has no column {min(lacking)}" if lacking else ""


def _table(
    files: Sequence[StoredFile], kind: DatasetKind, columns: Sequence[str] | None, condition: ds.Expression | None
) -> pa.Table:
    if not files:
        return empty_table(kind, columns)
    table = _dataset(files, kind).to_table(None if columns is None else list(columns), filter=condition)
    table.validate(full=True)
    return table


def _one_by_one(
    files: Sequence[StoredFile], kind: DatasetKind, columns: Sequence[str] | None, condition: ds.Expression | None
) -> Reading:
    tables, broken = [_table([], kind, columns, condition)], []
    for file in files:
        try:
            tables.append(_table([file], kind, columns, condition))
        except _UNREADABLE as error:
            broken.append(SkippedFile(file.name, _reason(error)))
    return Reading(pa.concat_tables(tables), broken)


def _dataset(files: Sequence[StoredFile], kind: DatasetKind) -> ds.FileSystemDataset:
    return ds.FileSystemDataset([file.fragment for file in files], kind.schema(), kind.form)


def _reason(error: BaseException) -> str:
    """The first line of an error, without the path that Arrow begins with: the file is named already."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return _PATH_FIRST.sub("", first)[:_LONGEST_REASON]
