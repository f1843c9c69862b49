"""The history of all runs: Parquet, one file per run and suite, in folders by suite and day.

HISTORY/trials/suite=golden/day=2026-01-31/RUN.parquet      a row per trial: schema/trial.schema.json
HISTORY/transcripts/day=2026-01-31/RUN.parquet              each transcript once, by its digest
HISTORY/summaries/2026-01-31/RUN.parquet                    a row per eval task: schema/summary.schema.json
HISTORY/summaries/2026-01-31/RUN.2.parquet                  that of a run stored again: the highest counts
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.activity import STORING, marked
from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, SUMMARY_VERSION
from passgate.tasks.history.dataset_folder import DatasetFolder
from passgate.tasks.history.encoding import decoded, encoded
from passgate.tasks.history.parquet_files import (
    ENCODED_SUMMARIES,
    TRIALS,
    DatasetKind,
    DatasetListing,
    Reading,
    SkippedFile,
    StoredFile,
    empty_table,
    in_portions,
    listed,
    read_files,
    read_listed,
    skipped_text,
)
from passgate.tasks.history.summaries import TRIAL_COLUMNS, summarised
from passgate.tasks.model.run import RunContext

_log = logging.getLogger(__name__)

PRUNING: Final = ".pruning"  # The folder with an empty file for each run that is being removed
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


class TasksOfRuns(NamedTuple):
    """Some tasks in some runs, by their ids."""

    runs: frozenset[str]
    tasks: frozenset[str]


class History:
    """The history at a folder or URL (`s3://...`, or whatever fsspec knows)."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.files = DatasetFolder(location)

    @property
    def folder(self) -> Path | None:
        """Where it lies on this machine; `None` for one that lies elsewhere."""
        return self.files.path

    def write_run(self, run_id: str, day: str, table: pa.Table, transcripts: Mapping[str, str]) -> None:
        """Store a finished run, its trials as of `table_of`, over what an earlier end of the same run had stored.

        Raises `StorageError`.
        """
        stored = pa.table({"transcript_digest": list(transcripts), "transcript": list(transcripts.values())})
        try:
            with marked(self.files, f"{STORING}-{run_id}"):
                self._refuse_pruned(run_id)
                number = self._forget_summary(run_id, day)
                self.files.write_table(f"transcripts/day={day}/{run_id}.parquet", stored)
                for suite in pc.unique(table["suite"]).to_pylist():
                    part = table.filter(pc.equal(table["suite"], suite)).drop_columns(list(PARTITIONS))
                    self.files.write_table(f"trials/suite={suite}/day={day}/{run_id}.parquet", part)
                self.files.write_table(f"summaries/{day}/{summary_name(run_id, number)}", summarised(table))
        except OSError as error:
            raise StorageError(f"cannot write the history {self.location}: {error}") from error

    def _forget_summary(self, run_id: str, day: str) -> int:
        """Remove what there is of a run's summary, and give the number that the next one has.

        Without a summary, readers make it from the trials. A summary of other trials would mislead them. The next one
        has a name of its own: a branch of git that is merged can bring the earlier one back.
        """
        numbers = [0]
        for name in self.files.names(f"summaries/{day}"):
            if run_of(name.removesuffix(".parquet")) == run_id and not name.startswith("."):
                numbers.append(summary_number(name.removesuffix(".parquet")))
                self.files.remove(f"summaries/{day}/{name}")
        return max(numbers) + 1

    def _refuse_pruned(self, run_id: str) -> None:
        if run_id in self.pruned:
            raise StorageError(
                f"the run {run_id} is being removed from the history {self.location}: "
                "end that with `passgate history prune`, then store the run again"
            )

    @property
    def pruned(self) -> frozenset[str]:
        """The runs that are being removed, or whose removal was cut short: readers leave them out. Raises `OSError`."""
        return frozenset(self.files.names(PRUNING))

    @property
    def has_runs(self) -> bool:
        """Whether there is a file of trials. Raises `OSError`."""
        return bool(self.listed("trials", TRIALS).files)

    def refuse_unwritable(self, day: str, suites: Iterable[str]) -> None:
        """Find out, by writing and removing empty files, whether a run of a day and these suites can be stored.

        Raises `UsageError` when it cannot.
        """
        try:
            trials = (f"trials/suite={suite}/day={day}" for suite in suites)
            for folder in (f"transcripts/day={day}", f"summaries/{day}", *trials):
                self.files.refuse_unwritable(folder)
        except Exception as error:  # drivers of fsspec have errors of their own
            raise UsageError(
                f"the history {self.location} cannot be written: {error}: name a folder or URL that can be, "
                "with --history or `history` in gates.yaml"
            ) from error

    def trials(
        self,
        where: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        of: TasksOfRuns | None = None,
    ) -> pd.DataFrame:
        """The rows whose columns have these values, all without; empty for a history that does not exist yet.

        With `columns` only these are read. With `of` only the files of its runs are read. A file that is broken or none
        of passgate's is skipped, with a warning to the log that counts them.

        Raises `StorageError` for one that cannot be read, or that a newer passgate has written.
        """
        read = None if columns is None else [*columns, "schema_version"]
        condition = None
        for column, value in (where or {}).items():
            equal = ds.field(column) == value
            condition = equal if condition is None else condition & equal
        if of is not None:
            condition = _all_of(condition, ds.field("task_id").isin(pa.array(sorted(of.tasks), pa.string())))
        try:
            table = self._read(read, condition, None if of is None else of.runs)
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
        return decoded(joined(self.encoded_portions(columns, days, suite), columns))

    def encoded_portions(
        self, columns: Sequence[str], days: Days = ALL_DAYS, suite: str | None = None
    ) -> Iterator[pa.Table]:
        """The same rows, some runs at a time, the oldest month first. A suite of a run is in one portion. It skips and
        raises as `summaries` does.
        """
        wanted = tuple(dict.fromkeys((*columns, "run_id", "summary_version")))
        skipped = list[SkippedFile]()
        try:
            for reading in self._portions(wanted, days, suite):
                self._refuse_newer(reading.table["summary_version"], SUMMARY_VERSION)
                skipped += reading.skipped
                yield reading.table.select(list(columns)).unify_dictionaries()
        except (OSError, pa.ArrowException, ValueError, TypeError) as error:
            raise StorageError(f"cannot read the history {self.location}: {error}") from error
        self._tell(skipped)

    def _portions(self, columns: Sequence[str], days: Days, suite: str | None) -> Iterator[Reading]:
        listing = self.listed("summaries", ENCODED_SUMMARIES)
        own = newest_of_runs(file for file in listing.files if days.may_hold(file.place["folder"]))
        trials = self.listed("trials", TRIALS)
        of_days = [
            file for file in trials.files if days.may_hold(file.place["day"]) and suite in {None, file.place["suite"]}
        ]
        yield Reading(empty_table(ENCODED_SUMMARIES, columns), [*listing.strays, *trials.strays])
        own_of, trials_of = _by_month(own, "folder"), _by_month(of_days, "day")
        for month in sorted({*own_of, *trials_of}):
            yield from self._of_month(columns, suite, own_of.get(month, []), trials_of.get(month, []))

    def _of_month(
        self,
        columns: Sequence[str],
        suite: str | None,
        own: Sequence[StoredFile],
        trials: Sequence[StoredFile],
    ) -> Iterator[Reading]:
        of_suite, known = None if suite is None else ds.field("suite") == suite, set[str]()
        for portion in in_portions(own, _MOST_ROWS):
            reading = read_files(portion, ENCODED_SUMMARIES, columns, of_suite)
            unread = {skipped.name for skipped in reading.skipped}
            known |= {run_of(file.place["stem"]) for file in portion if file.name not in unread}
            yield reading
        for table, broken in self._summarised([file for file in trials if file.place["stem"] not in known]):
            yield Reading(encoded(table.select(list(columns))), broken)

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

    def _read(
        self, columns: Sequence[str] | None, condition: ds.Expression | None, runs: Collection[str] | None = None
    ) -> pa.Table:
        found = self.listed("trials", TRIALS)
        if runs is not None:
            found = found._replace(files=[file for file in found.files if file.place["stem"] in runs])
        table, skipped = read_listed(found, TRIALS, columns, condition)
        self._tell(skipped)
        return table

    def listed(self, name: str, kind: DatasetKind) -> DatasetListing:
        """The files of a dataset of the history, without those of runs that are being removed. Raises `OSError`."""
        found, pruned = self._listed(name, kind), self.pruned
        return found._replace(files=[file for file in found.files if run_of(file.place["stem"]) not in pruned])

    def every_file(self, name: str, kind: DatasetKind) -> list[StoredFile]:
        """The files of a dataset, also those of runs that are being removed. Raises `OSError`."""
        return self._listed(name, kind).files

    def _listed(self, name: str, kind: DatasetKind) -> DatasetListing:
        if not self.files.has_folder(name):
            return DatasetListing([], [])
        return listed(self.files.files, self.files.place(name), kind)

    def _tell(self, skipped: Sequence[SkippedFile]) -> None:
        if skipped:
            _log.warning("the history %s: %s", self.location, skipped_text(skipped))


@contextmanager
def refuse_foreign_rows() -> Iterator[None]:
    """Raise `StorageError` where rows of a history have values that passgate does not write."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise StorageError(f"the history holds rows that are not passgate's: {error}; remove their files") from error


def joined(portions: Iterable[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Encoded portions of summaries as one table with these columns."""
    return pa.concat_tables([empty_table(ENCODED_SUMMARIES, columns), *portions]).unify_dictionaries()


def _by_month(files: Iterable[StoredFile], place: str) -> dict[str, list[StoredFile]]:
    """The files of each month, in their order; `place` is what says the day or month of a file."""
    months: dict[str, list[StoredFile]] = {}
    for file in files:
        months.setdefault(file.place[place][:7], []).append(file)
    return months


def _all_of(*conditions: ds.Expression | None) -> ds.Expression | None:
    """What all conditions ask for; `None` where there is none, which spares looking at any row."""
    asked = [one for one in conditions if one is not None]
    return reduce(and_, asked) if asked else None


def run_of(stem: str) -> str:
    """The run that a file is of, by the stem of its name."""
    return stem.partition(".")[0]


def summary_number(stem: str) -> int:
    """Which summary of its run a file is, by the stem of its name, from 1 on."""
    number = stem.partition(".")[2]
    return int(number) if number.isdecimal() else 1


def summary_name(run_id: str, number: int) -> str:
    """The name of a summary's file."""
    return f"{run_id}.parquet" if number == 1 else f"{run_id}.{number}.parquet"


def newest_of_runs(files: Iterable[StoredFile]) -> list[StoredFile]:
    """Of each run the file with the highest number, the oldest run first."""
    newest: dict[str, StoredFile] = {}
    for file in sorted(files, key=lambda one: summary_number(one.place["stem"])):
        newest[run_of(file.place["stem"])] = file
    return [newest[run] for run in sorted(newest)]


def refuse_unwritable(context: RunContext) -> None:
    """Find out, before the first trial, whether the history can take the run. Raises `UsageError`."""
    suites = dict.fromkeys(str(task.suite) for task in context.tasks)
    History(context.history_location).refuse_unwritable(context.day, suites)
