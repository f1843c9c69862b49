"""The history of all runs: a Parquet dataset with a file per run.

HISTORY/trials/RUN.parquet         a row per trial: schema/trial.schema.json
HISTORY/transcripts/RUN.parquet    each transcript of the run once, by its digest

The id of a run begins with its time, so the names sort by time, and a reader opens only the newest runs. Before version
6 of the schema a run had a file per suite, trials/suite=golden/day=2026-01-31/RUN.parquet: readers read these too.
"""

import logging
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder
from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, arrow_schema
from passgate.tasks.history.storage import STATE_FOLDER

_log = logging.getLogger(__name__)

MOST_RUNS: Final = 400  # A reader takes this many of the newest runs, unless it asks for more
_TRIALS: Final = "trials"
_TRANSCRIPTS: Final = "transcripts"
_FOLDERS: Final = ("summaries", _TRANSCRIPTS, _TRIALS)  # Summaries were written before version 6
_FILE: Final = re.compile(
    r"(?:suite=(?P<suite>[a-z_]+)/day=(?P<day>\d{4}-\d\d-\d\d)/)?(?P<run>\d{8}T\d{6}Z-[a-z_]+-[0-9a-f]+)\.parquet"
)
_NEEDED: Final = frozenset(
    ("schema_version", "run_id", "gate", "task_id", "task_digest", "grader_digest", "agent", "k", "metric")
) | {"started_at", "trial", "status"}  # Columns that every version of passgate has written
_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())
_FORMAT: Final = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
_THREADS: Final = 16  # A file at a URL takes the time of a request
_UNREADABLE: Final = (OSError, pa.ArrowException, UnicodeDecodeError)
_PATH_FIRST: Final = re.compile(r"Could not open Parquet input source '[^']*': ")
_SCHEME: Final = "://"
_MOST_NAMED: Final = 3
_LONGEST_REASON: Final = 200


@dataclass(frozen=True)
class RunSelection:
    """Which runs of a history a reader takes, by their ids: the newest, or all since a day."""

    since: str = ""
    """The first UTC day, as in `2026-01-31`. With it all runs since then are taken, whatever `newest` says."""
    until: str = ""  # The last UTC day
    before: str = ""  # Runs whose ids sort before this one
    gate: str | None = None
    ids: Collection[str] | None = None  # Only these runs
    newest: int | None = MOST_RUNS  # `None` takes all

    def choose(self, run_ids: Iterable[str]) -> list[str]:
        """Return the chosen runs, the oldest first."""
        first, last = self.since.replace("-", ""), self.until.replace("-", "")
        chosen = sorted(
            run_id
            for run_id in set(run_ids)
            if first <= run_id[:8]
            and (not last or run_id[:8] <= last)
            and (not self.before or run_id < self.before)
            and (self.gate is None or f"-{self.gate}-" in run_id)
            and (self.ids is None or run_id in self.ids)
        )
        return chosen if self.since or self.newest is None else chosen[-self.newest :]


NEWEST: Final = RunSelection()
EVERY_RUN: Final = RunSelection(newest=None)


@dataclass(frozen=True)
class _TrialsFile:
    """A file of trials, not opened yet."""

    name: str  # Relative to the folder of trials
    run_id: str
    partition: Mapping[str, str]  # The columns that its path holds


class History:
    """The history at a folder or URL (`s3://...`, whatever fsspec knows). Its files are there whole or not at all."""

    def __init__(self, location: str) -> None:
        """Open the location. Raise `StorageError` if this machine has no driver for it."""
        self.location = location
        self._files, self._root = _file_system(location)
        # A history elsewhere may be shared: its permissions are those that its owner chose.
        self._is_private = _SCHEME not in location and Path(self._root).is_relative_to(STATE_FOLDER.absolute())

    @property
    def folder(self) -> Path | None:
        """Return where it lies on this machine, or `None` if it lies elsewhere."""
        files = self._files
        if isinstance(files, fs.PyFileSystem):
            from fsspec.implementations.local import LocalFileSystem

            inner = files.handler.fs
            while hasattr(inner, "fs"):  # of a cache, say
                inner = inner.fs
            is_local = isinstance(inner, LocalFileSystem)
        else:
            is_local = isinstance(files, fs.LocalFileSystem)
        return Path(self._root) if is_local else None

    def write_run(self, run_id: str, table: pa.Table, transcripts: Mapping[str, str]) -> None:
        """Store the trials of a run over those of an earlier end; nothing without trials. Raises `StorageError`."""
        if not len(table):
            return
        stored = pa.table({"transcript_digest": list(transcripts), "transcript": list(transcripts.values())})
        for column in PARTITIONS:
            # Other tools read them from the paths of older files as dictionaries, and refuse a mixture of types.
            index = table.schema.get_field_index(column)
            table = table.set_column(index, table.field(index).with_type(_ENCODED), table[column].cast(_ENCODED))
        try:
            # The run is stored when its trials are there.
            for folder, content in ((_TRANSCRIPTS, stored), (_TRIALS, table)):
                unfinished = f"{self._make(folder)}/.{run_id}.parquet.unfinished"
                pq.write_table(
                    content, unfinished, filesystem=self._files, compression="zstd", write_page_checksum=True
                )
                if self._is_private:
                    Path(unfinished).chmod(PRIVATE_FILE)
                self._files.move(unfinished, f"{self._root}/{folder}/{run_id}.parquet")
        except OSError as error:
            raise StorageError(f"cannot write the history {self.location}: {error}") from error

    def remove_runs(self, run_ids: Collection[str]) -> None:
        """Remove runs with their transcripts. Raises `StorageError`."""
        try:
            # Trials go last: the run of a removal that was cut short is still listed, and can be removed again.
            for folder in _FOLDERS:
                for name, is_file in list(self._entries(folder)):
                    if is_file and name.rpartition("/")[2].partition(".")[0] in run_ids:
                        with suppress(FileNotFoundError):  # another process was faster
                            self._files.delete_file(f"{self._root}/{folder}/{name}")
        except OSError as error:
            raise StorageError(f"cannot write the history {self.location}: {error}") from error

    def refuse_unwritable(self) -> None:
        """Find out, by writing and removing empty files, whether a run can be stored. Raises `UsageError` if not."""
        try:
            for folder in (_TRANSCRIPTS, _TRIALS):
                probe = f"{self._make(folder)}/.probe-{secrets.token_hex(8)}"
                self._files.open_output_stream(probe).close()
                self._files.delete_file(probe)
        except Exception as error:  # drivers of fsspec have errors of their own
            raise UsageError(
                f"the history {self.location} cannot be written: {error}: name a folder or URL that can be, "
                "with --history or `history` in gates.yaml"
            ) from error

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, the oldest first. Raises `StorageError`."""
        return sorted({file.run_id for file in self._list()[0]})

    def trials(
        self,
        columns: Sequence[str] | None = None,
        where: ds.Expression | None = None,
        runs: RunSelection = NEWEST,
    ) -> pa.Table:
        """Return the trials of some runs that fit a condition; no rows if there is no history yet.

        A file that is broken or none of passgate's is skipped, with a warning to the log that counts them. Raises
        `StorageError` if the history cannot be read, or if a newer passgate has written it.
        """
        files, skipped = self._list()
        chosen = set(runs.choose(file.run_id for file in files))
        files = [file for file in files if file.run_id in chosen]
        wanted = arrow_schema().names if columns is None else list(dict.fromkeys((*columns, "schema_version")))
        with ThreadPoolExecutor(_THREADS) as threads:
            read = list(threads.map(partial(self._read, columns=wanted, where=where), files))
        skipped += [f"{file.name} ({found})" for file, found in zip(files, read, strict=True) if isinstance(found, str)]
        if skipped:
            count = "1 file is skipped" if len(skipped) == 1 else f"{len(skipped)} files are skipped"
            named = ", ".join(
                skipped[:_MOST_NAMED] + [f"{len(skipped) - _MOST_NAMED} more"] * (len(skipped) > _MOST_NAMED)
            )
            _log.warning("the history %s: %s: %s; restore or remove what is skipped", self.location, count, named)
        empty = arrow_schema().empty_table().select(wanted)
        table = pa.concat_tables([empty, *(found for found in read if isinstance(found, pa.Table))])
        if (pc.max(table["schema_version"]).as_py() or 0) > SCHEMA_VERSION:
            raise StorageError(
                f"the history {self.location} was written by a newer passgate: bring this one up to date"
            )
        return table if columns is None else table.select(list(columns))

    def summaries(self, runs: RunSelection = NEWEST, suite: str | None = None) -> pa.Table:
        """Return a row per run and eval task: schema/summary.schema.json. It skips and raises as `trials` does."""
        from passgate.tasks.history.summaries import TRIAL_COLUMNS, task_summaries

        return task_summaries(self.trials(TRIAL_COLUMNS, None if suite is None else ds.field("suite") == suite, runs))

    def _make(self, folder: str) -> str:
        """Make a folder of the dataset and return its path. Raises `OSError`."""
        path = f"{self._root}/{folder}"
        if self._is_private:
            make_private_folder(Path(path))
        else:
            self._files.create_dir(path, recursive=True)
        return path

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield the names of all in a folder at any depth, and whether each is a file. Raises `OSError`."""
        path = f"{self._root}/{folder}"
        for info in self._files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
            yield info.path[len(path) :].strip("/"), info.type is fs.FileType.File

    def _list(self) -> tuple[list[_TrialsFile], list[str]]:
        """Return the files of trials, and what lies beside them that is none."""
        files, strays = list[_TrialsFile](), list[str]()
        try:
            entries = list(self._entries(_TRIALS))
        except OSError as error:
            raise StorageError(f"cannot read the history {self.location}: {error}") from error
        for name, is_file in entries:
            found = _FILE.fullmatch(name)
            if any(part.startswith((".", "_")) for part in name.split("/")):
                continue
            if found and is_file:
                partition = {column: value for column in PARTITIONS if (value := found[column])}
                files.append(_TrialsFile(name, found["run"], partition))
            elif is_file or found:
                strays.append(f"{name} (not {'a file' if found else 'of passgate'})")
        # A run that was stored by an older passgate, then resumed by this one, has both kinds of files.
        whole = {file.run_id for file in files if not file.partition}
        counted = [file for file in files if not file.partition or file.run_id not in whole]
        return sorted(counted, key=lambda file: (file.run_id, file.name)), strays

    def _read(self, file: _TrialsFile, columns: Sequence[str], where: ds.Expression | None) -> pa.Table | str:
        """Return the rows of a file that fit a condition, or why it cannot be read."""
        partition = ds.scalar(value=True)
        for column, value in file.partition.items():
            partition = partition & (ds.field(column) == value)
        try:
            with self._files.open_input_stream(f"{self._root}/{_TRIALS}/{file.name}") as stream:
                fragment = _FORMAT.make_fragment(stream.read_buffer(), partition_expression=partition)
            lacking = _NEEDED.difference(fragment.physical_schema.names)
            if lacking:
                return f"not passgate's: it has no column {min(lacking)}"
            table = fragment.to_table(arrow_schema(), columns=list(columns), filter=where, use_threads=False)
            table.validate(full=True)
        except _UNREADABLE as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            return _PATH_FIRST.sub("", first)[:_LONGEST_REASON]
        return table


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


@contextmanager
def refuse_foreign_rows() -> Iterator[None]:
    """Raise `StorageError` if rows of a history have values that passgate does not write."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise StorageError(f"the history holds rows that are not passgate's: {error}; remove their files") from error
