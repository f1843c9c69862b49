"""Whether the rows of a history can be what they say."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.encoding import decoded
from passgate.tasks.history.parquet_files import FILE
from passgate.tasks.model.trial import TrialStatus

CHECKED: Final = (
    *("run_id", "gate", "day", "agent", "git_commit", "git_branch", "git_dirty", FILE),
    *("suite", "task_id", "task_digest", "grader_digest", "k", "metric", "trial", "status", "score", "started_at"),
)  # The columns that are looked at
CHECKED_OF_SUMMARIES: Final = (
    *("run_id", "gate", "day", "agent", "git_commit", "git_branch", "git_dirty"),
    *("suite", "task_id", "started_at", "value"),
)  # The columns of summaries that are looked at
_RUN: Final = ["run_id"]
_TASK: Final = [*_RUN, "suite", "task_id"]
_OF_RUN: Final = ["gate", "agent", "git_commit", "git_branch", "git_dirty"]
_OF_TASK: Final = ["task_digest", "grader_digest", "k", "metric"]
_ID: Final = r"^(\d{8}T\d{6})Z-(.+)-(?:[0-9a-f]{4}|[0-9a-f]{8})$"  # The longer ones are of flow runs of Prefect
_CLOCKS: Final = timedelta(days=1)
"""By how much the clocks of two machines may differ: wrong time zones are common, and a forger is not that clumsy."""
_STATUSES: Final = [str(status) for status in TrialStatus]


def implausible_runs(trials: pd.DataFrame, committed: Mapping[str, datetime], now: datetime) -> dict[str, str]:
    """The runs with a row that cannot be what it says, by their ids, each with the first reason.

    `trials` has the columns `CHECKED`; `committed` says when commits were made, those that are known.
    """
    found: dict[str, str] = {}
    for is_wrong, why in _checks(trials, committed, now):
        for run_id in trials.loc[is_wrong, "run_id"].astype(str).unique():
            found.setdefault(run_id, why)
    return found


def implausible_summaries(summaries: pa.Table, committed: Mapping[str, datetime], now: datetime) -> dict[str, str]:
    """The same for rows of summaries, encoded or not, with the columns `CHECKED_OF_SUMMARIES`."""
    found: dict[str, str] = {}
    runs = summaries.group_by(list(CHECKED_OF_SUMMARIES[:7])).aggregate([("started_at", "min"), ("started_at", "max")])
    of_runs = decoded(runs).to_pandas()
    checks = [(of_runs, check) for check in _checks_of_summaries(of_runs, committed, now)]
    tasks = summaries.group_by(["run_id", "suite", "task_id"]).aggregate([([], "count_all")])
    twice = decoded(tasks.filter(pc.greater(tasks["count_all"], 1)).select(["run_id"])).to_pandas()
    beyond = pc.fill_null(pc.or_(pc.less(summaries["value"], 0), pc.greater(summaries["value"], 1)), fill_value=False)
    outside = decoded(summaries.select(["run_id"]).filter(beyond)).to_pandas()
    checks += [(twice, (twice["run_id"].notna(), "a task stands in it twice"))]
    checks += [(outside, (outside["run_id"].notna(), "a task has a value that none can have"))]
    for frame, (is_wrong, why) in checks:
        for run_id in frame.loc[is_wrong, "run_id"].astype(str).unique():
            found.setdefault(run_id, why)
    return found


def _checks_of_summaries(
    runs: pd.DataFrame, committed: Mapping[str, datetime], now: datetime
) -> Iterator[tuple[pd.Series, str]]:
    parts = runs["run_id"].astype("string").str.extract(_ID)
    began = pd.to_datetime(parts[0], format="%Y%m%dT%H%M%S", errors="coerce", utc=True)
    yield began.isna() | (parts[1] != runs["gate"]).fillna(value=True), "its id is not that of a run of its gate"
    yield runs["day"] != began.dt.strftime("%Y-%m-%d"), "it is filed under another day"
    yield (began > now + _CLOCKS) | (runs["started_at_max"] > now + _CLOCKS), "it is in the future"
    yield runs["started_at_min"].isna() | (runs["started_at_min"] < began - _CLOCKS), "a trial is older than the run"
    commits = pd.to_datetime(runs["git_commit"].map(dict(committed)), utc=True)
    yield began < commits - _CLOCKS, "it is older than its commit"
    yield runs["run_id"].duplicated(keep=False), "its trials are of several runs"


def _checks(trials: pd.DataFrame, committed: Mapping[str, datetime], now: datetime) -> Iterator[tuple[pd.Series, str]]:
    parts = trials["run_id"].astype("string").str.extract(_ID)
    began = pd.to_datetime(parts[0], format="%Y%m%dT%H%M%S", errors="coerce", utc=True)
    yield began.isna() | (parts[1] != trials["gate"]).fillna(value=True), "its id is not that of a run of its gate"
    yield trials["day"] != began.dt.strftime("%Y-%m-%d"), "it is filed under another day"
    yield trials[FILE].map(_stem) != trials["run_id"], "its file has another name"
    started = trials["started_at"]
    yield (began > now + _CLOCKS) | (started > now + _CLOCKS), "it is in the future"
    yield started.isna() | (started < began - _CLOCKS), "a trial is older than the run"
    commits = pd.to_datetime(trials["git_commit"].map(dict(committed)), utc=True)
    yield began < commits - _CLOCKS, "it is older than its commit"
    yield _varies(trials, _RUN, _OF_RUN), "its trials are of several runs"
    yield _varies(trials, _TASK, _OF_TASK), "trials of one task are of several versions of it"
    yield trials.duplicated([*_TASK, "trial"], keep=False), "a trial stands in it twice"
    outside = (trials["trial"] < 0) | (trials["k"] < 1) | (trials["score"] < 0) | (trials["score"] > 1)
    yield outside | ~trials["status"].isin(_STATUSES), "a trial has values that none can have"


def _stem(file: str) -> str:
    return PurePath(file).stem


def _varies(trials: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.Series:
    """Whether any of the columns has several values among the rows with the same keys."""
    distinct = trials.groupby(keys, sort=False, dropna=False)[columns].transform("nunique", dropna=False)
    return (distinct > 1).any(axis="columns")
