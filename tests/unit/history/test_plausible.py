"""Rows that cannot be what they say: their ids, times, commits and trials held against each other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from passgate.tasks.history.columns import rows
from passgate.tasks.history.plausible import CHECKED, FILE, implausible_runs
from passgate.tasks.model.run import Revision
from tests.builders import a_plan, a_run_id, a_task, begun, trials_of

RUN = a_run_id("20260131")
OTHER = a_run_id("20260131", "ffff")
COMMIT = "c" * 40
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def run(run_id: str = RUN, statuses: str = "ppf", **changes: Any) -> pd.DataFrame:
    """The rows of a run of two tasks, with some values in place of their own."""
    tasks = a_task(), a_task(task_id="other")
    revision = Revision(commit=COMMIT, branch="main")
    plan = a_plan(*tasks, run_id=run_id, created_at=begun(run_id), revision=revision)
    trials = [trial for task in tasks for trial in trials_of(task, statuses)]
    frame = pd.DataFrame(rows(trials, plan))
    return frame.assign(**{FILE: f"history/trials/{run_id}.parquet", **changes})[list(CHECKED)]


def found(*runs: pd.DataFrame, committed: datetime | None = None) -> dict[str, str]:
    trials = pd.concat(runs, ignore_index=True)
    return implausible_runs(trials, {COMMIT: committed} if committed else {}, NOW)


def test_runs_of_passgate_s_own_are_plausible() -> None:
    assert found(run(), run(OTHER, "pe--ppp"), committed=begun(RUN)) == {}
    assert found(run(git_commit="", git_branch=""), run(OTHER, git_commit=None)) == {}
    assert found(run(a_run_id("20260131", "0a0b0c0d"))) == {}, "the id of a flow run's run has more of a token"
    assert found(run(), run(OTHER, task_digest="another", k=4, agent="another")) == {}
    assert found(run()[:0]) == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gate": "nightly"}, "its id is not that of a run of its gate"),
        ({"gate": None}, "its id is not that of a run of its gate"),
        ({"day": "2026-01-30"}, "it is filed under another day"),
        ({"day": None}, "it is filed under another day"),
        ({FILE: f"history/trials/{OTHER}.parquet"}, "its file has another name"),
        ({"started_at": NOW + timedelta(days=2)}, "it is in the future"),
        ({"started_at": begun(RUN) - timedelta(days=2)}, "a trial is older than the run"),
        ({"started_at": pd.NaT}, "a trial is older than the run"),
        ({"trial": 0}, "a trial stands in it twice"),
        ({"trial": [-1, 0, 1] * 2}, "a trial has values that none can have"),
        ({"k": 0}, "a trial has values that none can have"),
        ({"score": 1.5}, "a trial has values that none can have"),
        ({"status": "superb"}, "a trial has values that none can have"),
        ({"agent": ["a", "b"] * 3}, "its trials are of several runs"),
        ({"git_commit": [COMMIT, "d" * 40] * 3}, "its trials are of several runs"),
        ({"git_branch": ["main", None] * 3}, "its trials are of several runs"),
        ({"git_dirty": [True, False] * 3}, "its trials are of several runs"),
        ({"task_digest": ["a", "b"] * 3}, "trials of one task are of several versions of it"),
        ({"k": [3, 4] * 3}, "trials of one task are of several versions of it"),
    ],
)
def test_a_run_with_a_row_that_cannot_be_counts_for_nothing(changes: dict[str, Any], why: str) -> None:
    assert found(run(**changes), run(OTHER)) == {RUN: why}


@pytest.mark.parametrize(
    "run_id", ["", "x", "20260131", "20269999T000000Z-ci_merge-0a0b", "../20260131T000000Z-ci_merge-0a0b"]
)
def test_an_id_has_a_time_in_it(run_id: str) -> None:
    rows_of_run = run().assign(run_id=run_id, **{FILE: f"history/{run_id}.parquet"})
    assert found(rows_of_run) == {run_id: "its id is not that of a run of its gate"}


def test_a_run_of_the_future_cannot_be() -> None:
    late = a_run_id("20260301")
    assert found(run(late, started_at=NOW)) == {late: "it is in the future"}


@pytest.mark.parametrize(("hours", "is_left_out"), [(-1000, False), (20, False), (30, True)])
def test_a_run_is_not_older_than_its_commit(hours: int, is_left_out: bool) -> None:
    """Clocks of two machines differ, by a wrong time zone at most."""
    wrong = found(run(), committed=begun(RUN) + timedelta(hours=hours))
    assert wrong == ({RUN: "it is older than its commit"} if is_left_out else {})
