"""The history of all runs: Parquet, one file per run and suite, in folders by suite and day.

HISTORY/trials/suite=golden/day=2026-01-31/RUN.parquet      a row per trial: schema/trial.schema.json
HISTORY/transcripts/day=2026-01-31/RUN.parquet              each transcript once, by its digest
HISTORY/summaries/2026-01-31/RUN.parquet                    a row per eval task: schema/summary.schema.json
HISTORY/summaries/2026-01/compacted.parquet                 the summaries of a month, after `passgate history compact`
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder
from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, SUMMARY_VERSION
from passgate.tasks.history.parquet_files import (
    SUMMARIES,
    TRIALS,
    DatasetKind,
    DatasetListing,
    SkippedFile,
    StoredFile,
    empty_table,
    in_portions,
    listed,
    read_all,
    read_files,
    skipped_text,
)
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.history.summaries import TRIAL_COLUMNS, summarised
from passgate.tasks.model.run import RunContext

_log = logging.getLogger(__name__)

COMPACTED: Final = "compacted"  # The stem of a file with the summaries of many runs
_MOST_ROWS: Final = 250_000
"""Trials that are read at once where their summaries are made: about 200 MB."""


class Days(NamedTuple):
    """The UTC days on which runs began, as in `2026-01-31`, the first and the last of them included."""

    since: str = ""
    until: str = ""

    def may_hold(self, period: str) -> bool:
        """Whether a day, or a month as in `2026-01`, has a part in them."""
        length = len(period)
        return self.since[:length] <= period and (not self.until or period <= self.until[:length])

    def condition(self) -> ds.Expression:
        """The same of the column `day`."""
        condition = ds.field("day") >= self.since
        return condition & (ds.field("day") <= self.until) if self.until else condition


ALL_DAYS: Final = Days()


class History:
    """The history at a folder or URL (`s3://...`, or whatever fsspec knows)."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._files, self._root = _file_system(location)
        # A history elsewhere may be shared: its permissions are those that its owner chose.
        self._is_private = "://" not in location and Path(self._root).is_relative_to(STATE_FOLDER.absolute())

    @property
    def folder(self) -> Path | None:
        """Where it lies on this machine; `None` for one that lies elsewhere."""
        return Path(self._root) if _is_of_this_machine(self._files) else None

    def write_run(self, run_id: str, day: str, table: pa.Table, transcripts: Mapping[str, str]) -> None:
        """Store a finished run, its trials as of `table_of`, over what an earlier end of the same run had stored.

        Raises `StorageError`.
        """
        stored = pa.table({"transcript_digest": list(transcripts), "transcript": list(transcripts.values())})
        summary = f"summaries/{day}/{run_id}.parquet"
        try:
            # Without a summary, readers make it from the trials. A summary of other trials would mislead them.
            self._remove(summary)
            self._write(f"transcripts/day={day}/{run_id}.parquet", stored)
            for suite in pc.unique(table["suite"]).to_pylist():
                part = table.filter(pc.equal(table["suite"], suite)).drop_columns(list(PARTITIONS))
                self._write(f"trials/suite={suite}/day={day}/{run_id}.parquet", part)
            self._write(summary, summarised(table))
        except OSError as error:
            raise StorageError(f"cannot write the history {self.location}: {error}") from error

    def refuse_unwritable(self, day: str, suites: Iterable[str]) -> None:
        """Find out, by writing and removing empty files, whether a run of a day and these suites can be stored.

        Raises `UsageError` when it cannot.
        """
        try:
            trials = (f"trials/suite={suite}/day={day}" for suite in suites)
            for folder in (f"transcripts/day={day}", f"summaries/{day}", *trials):
                self._try_to_write(f"{self._root}/{folder}")
        except Exception as error:  # drivers of fsspec have errors of their own
            raise UsageError(
                f"the history {self.location} cannot be written: {error}: name a folder or URL that can be, "
                "with --history or `history` in gates.yaml"
            ) from error

    def _try_to_write(self, folder: str) -> None:
        probe = f"{folder}/.probe-{secrets.token_hex(8)}"
        self._make(folder)
        with self._files.open_output_stream(probe) as stream:
            stream.write(b"")
        self._files.delete_file(probe)

    def trials(self, where: Mapping[str, str] | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """The rows whose columns have these values, all without; empty for a history that does not exist yet.

        With `columns` only these are read; `FILE` may be one of them. A file that is broken or none of passgate's is
        skipped, with a warning to the log that counts them.

        Raises `StorageError` for one that cannot be read, or that a newer passgate has written.
        """
        read = None if columns is None else [*columns, "schema_version"]
        condition = None
        for column, value in (where or {}).items():
            equal = ds.field(column) == value
            condition = equal if condition is None else condition & equal
        try:
            table = self._read(read, condition)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"cannot read the history {self.location}: {error}") from error
        self._refuse_newer(table["schema_version"], SCHEMA_VERSION)
        frame: pd.DataFrame = table.to_pandas()
        return frame

    def trial_table(self, days: Days = ALL_DAYS, suite: str | None = None) -> pa.Table:
        """Every column of the trials of the days and the suite. It skips and raises as `trials` does."""
        condition = days.condition()
        if suite is not None:
            condition = condition & (ds.field("suite") == suite)
        try:
            table = self._read(None, condition)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"cannot read the history {self.location}: {error}") from error
        self._refuse_newer(table["schema_version"], SCHEMA_VERSION)
        return table

    def summaries(self, columns: Sequence[str], days: Days = ALL_DAYS, suite: str | None = None) -> pa.Table:
        """A row per run and eval task of the days and the suite, with these columns; empty where there is nothing.

        It reads the trials of those runs alone that have no summary: of an earlier passgate, say. A file that is broken
        or none of passgate's is skipped, with a warning to the log that counts them.

        Raises `StorageError` for a history that cannot be read, or that a newer passgate has written.
        """
        wanted = tuple(dict.fromkeys((*columns, "run_id", "summary_version")))
        try:
            tables, skipped = self._summaries(wanted, days, suite)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"cannot read the history {self.location}: {error}") from error
        self._tell(skipped)
        table = pa.concat_tables([empty_table(SUMMARIES, wanted), *tables])
        self._refuse_newer(table["summary_version"], SUMMARY_VERSION)
        return table.select(list(columns))

    def compact(self, before: str) -> int:
        """Join the summaries of each month before one, as in `2026-01`, into a file, and make those that are missing.

        Gives how many files it has joined. A file is removed once what it says stands in the joined one; what
        another process stores meanwhile stays. Raises `StorageError`.
        """
        own, _, _ = self._summary_files(ALL_DAYS)
        stored = [file.place["day"] for file in self._listed("trials", TRIALS).files]
        months = sorted({day[:7] for day in (*(file.place["period"] for file in own), *stored)})
        joined = 0
        for month in months:
            if month < before:
                joined += self._compact_month(month, [file for file in own if file.place["period"][:7] == month])
        return joined

    def _compact_month(self, month: str, own: Sequence[StoredFile]) -> int:
        names = SUMMARIES.schema().names
        table = self.summaries(names, Days(f"{month}-01", f"{month}-31"))
        held = set(pc.unique(table["run_id"]).to_pylist())
        done = [file for file in own if file.place["stem"] in held]
        try:
            whole = table.sort_by([(name, "ascending") for name in ("run_id", "suite", "task_id")])
            self._write(f"summaries/{month}/{COMPACTED}.parquet", whole)
            for file in done:
                self._remove(f"summaries/{file.name}")
        except OSError as error:
            raise StorageError(f"cannot write the history {self.location}: {error}") from error
        return len(done)

    def _summaries(
        self, columns: Sequence[str], days: Days, suite: str | None
    ) -> tuple[list[pa.Table], list[SkippedFile]]:
        own, compacted, strays = self._summary_files(days)
        condition = days.condition()
        if suite is not None:
            condition = condition & (ds.field("suite") == suite)
        single = read_files(own, SUMMARIES, columns, condition)
        unread = {skipped.name for skipped in single.skipped}
        known = {file.place["stem"] for file in own if file.name not in unread}
        # The file of a run is newer than what a compacted one says of it.
        others = condition & ~ds.field("run_id").isin(pa.array(sorted(known), pa.string()))
        many = read_files(compacted, SUMMARIES, columns, others)
        known.update(pc.unique(many.table["run_id"]).to_pylist())
        made, unmade = self._made_of_trials(known, columns, days, suite)
        return [single.table, many.table, *made], [*strays, *single.skipped, *many.skipped, *unmade]

    def _summary_files(self, days: Days) -> tuple[list[StoredFile], list[StoredFile], list[SkippedFile]]:
        """The files of single runs, the files of many, and what is no summary."""
        listing = self._listed("summaries", SUMMARIES)
        of_days = [file for file in listing.files if days.may_hold(file.place["period"])]
        own = [file for file in of_days if file.place["stem"] != COMPACTED]
        return own, [file for file in of_days if file.place["stem"] == COMPACTED], listing.strays

    def _made_of_trials(
        self, known: set[str], columns: Sequence[str], days: Days, suite: str | None
    ) -> tuple[list[pa.Table], list[SkippedFile]]:
        listing = self._listed("trials", TRIALS)
        missing = [
            file
            for file in listing.files
            if file.place["stem"] not in known
            and days.may_hold(file.place["day"])
            and suite in {None, file.place["suite"]}
        ]
        made, skipped = list[pa.Table](), list(listing.strays)
        for table, broken in self._summarised(missing):
            made.append(table.select(list(columns)))
            skipped += broken
        return made, skipped

    def _summarised(self, files: Sequence[StoredFile]) -> Iterator[tuple[pa.Table, list[SkippedFile]]]:
        for portion in in_portions(files, _MOST_ROWS):
            reading = read_files(portion, TRIALS, [*TRIAL_COLUMNS, "schema_version"])
            self._refuse_newer(reading.table["schema_version"], SCHEMA_VERSION)
            yield summarised(reading.table), reading.skipped

    def _refuse_newer(self, versions: pa.ChunkedArray, newest: int) -> None:
        if (pc.max(versions).as_py() or 0) > newest:
            raise StorageError(
                f"the history {self.location} was written by a newer passgate: bring this one up to date"
            )

    def _read(self, columns: Sequence[str] | None, condition: ds.Expression | None) -> pa.Table:
        if not self._exists("trials"):
            return empty_table(TRIALS, columns)
        table, skipped = read_all(self._files, f"{self._root}/trials", TRIALS, columns, condition)
        self._tell(skipped)
        return table

    def _listed(self, name: str, kind: DatasetKind) -> DatasetListing:
        return listed(self._files, f"{self._root}/{name}", kind) if self._exists(name) else DatasetListing([], [])

    def _tell(self, skipped: Sequence[SkippedFile]) -> None:
        if skipped:
            _log.warning("the history %s: %s", self.location, skipped_text(skipped))

    def _exists(self, name: str) -> bool:
        return bool(self._files.get_file_info(f"{self._root}/{name}").type == fs.FileType.Directory)

    def _remove(self, name: str) -> None:
        if self._files.get_file_info(f"{self._root}/{name}").type != fs.FileType.NotFound:
            self._files.delete_file(f"{self._root}/{name}")

    def _write(self, name: str, table: pa.Table) -> None:
        """Write a file under a temporary name and rename it, so that no reader sees half of it."""
        target = f"{self._root}/{name}"
        folder, _, file = target.rpartition("/")
        unfinished = f"{folder}/.{file}.unfinished"
        self._make(folder)
        pq.write_table(table, unfinished, filesystem=self._files, compression="zstd", write_page_checksum=True)
        if self._is_private:
            Path(unfinished).chmod(PRIVATE_FILE)
        self._files.move(unfinished, target)

    def _make(self, folder: str) -> None:
        if self._is_private:
            make_private_folder(Path(folder))
        else:
            self._files.create_dir(folder, recursive=True)


def _is_of_this_machine(files: fs.FileSystem) -> bool:
    if not isinstance(files, fs.PyFileSystem):
        return isinstance(files, fs.LocalFileSystem)
    from fsspec.implementations.local import LocalFileSystem

    inner = files.handler.fs
    while hasattr(inner, "fs"):  # of a cache, say
        inner = inner.fs
    return isinstance(inner, LocalFileSystem)


def _file_system(location: str) -> tuple[fs.FileSystem, str]:
    if "://" not in location:
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


def refuse_unwritable(context: RunContext) -> None:
    """Find out, before the first trial, whether the history can take the run. Raises `UsageError`."""
    suites = dict.fromkeys(str(task.suite) for task in context.tasks)
    History(context.history_location).refuse_unwritable(context.day, suites)
