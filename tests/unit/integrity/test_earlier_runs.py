"""What is read of a history: nothing that a change brings, and no run that cannot be what it says."""

import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.earlier_runs import (
    EarlierRuns,
    Kept,
    open_history,
    read_earlier_runs,
    read_summary_portions,
)
from passgate.tasks.model.run import Revision
from tests.builders import a_plan, a_run_id, a_task, begun, trials_of
from tests.repositories import GitRepository

TASK = a_task()
NOW = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "repository")
    made.commit()
    return made


def store(location: Path | str, day: str, **revision: Any) -> None:
    """Write a run of this day into a history."""
    run_id = a_run_id(day)
    plan = a_plan(TASK, run_id=run_id, created_at=begun(run_id), revision=Revision(**revision))
    History(str(location)).write_run(
        run_id, f"{plan.created_at:%Y-%m-%d}", table_of(rows(trials_of(TASK, "ppp"), plan)), {}
    )


def read(location: Path | str, checkout: Path, **more: Any) -> EarlierRuns:
    return read_earlier_runs(
        open_history(str(location), Checkout(checkout)), checkout, NOW, ("run_id", "status"), **more
    )


def runs(earlier: EarlierRuns) -> Iterable[str]:
    return sorted(earlier.trials["run_id"].unique())


def test_rows_come_with_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    store(tmp_path, "20260130")
    earlier = read(tmp_path, tmp_path, where={"agent": "cli:my-agent"})
    assert list(earlier.trials.columns) == ["run_id", "status"]
    assert (len(earlier.trials), earlier.left_out) == (3, "")
    assert read(tmp_path, tmp_path, where={"agent": "another"}).trials.empty
    none = read(tmp_path / "none", tmp_path)
    assert (len(none.trials), list(none.trials.columns), none.left_out) == (0, ["run_id", "status"], "")


def test_what_cannot_be_is_left_out_and_counted(tmp_path: Path) -> None:
    days = ("20260401", "20260402", "20260403", "20260404")
    for day in ("20260130", *days):
        store(tmp_path, day)
    earlier = read(tmp_path, tmp_path)
    assert list(runs(earlier)) == [a_run_id("20260130")]
    third, second, first = (f"{a_run_id(day)} (it is in the future)" for day in days[1:])
    assert earlier.left_out == (
        "passgate leaves out 4 runs of the history (12 trials) that cannot be genuine. Check the clocks of the "
        "machines and who can write the history. To end this note, delete the files that are named after "
        f"{first}, {second}, {third} and 1 more"
    )


def test_a_renamed_file_is_left_out(tmp_path: Path) -> None:
    store(tmp_path, "20260130")
    (file,) = tmp_path.rglob("trials/**/*.parquet")
    file.rename(file.with_name("another.parquet"))
    assert "its file has another name" in read(tmp_path, tmp_path).left_out


def test_a_run_before_its_commit_is_left_out(repository: GitRepository, tmp_path: Path) -> None:
    late = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%dT%H:%M:%SZ}"
    repository.git("commit", "--quiet", "--allow-empty", "--message", "Late", GIT_COMMITTER_DATE=late)
    commit = repository.git("rev-parse", "HEAD")
    store(tmp_path / "history", "20260130", commit=commit)
    store(tmp_path / "history", "20260131", commit="d" * 40)
    earlier = read(tmp_path / "history", repository.path)
    assert list(runs(earlier)) == [a_run_id("20260131")], "of a commit that is not here nothing is known"
    assert earlier.left_out.endswith(f"named after {a_run_id('20260130')} (it is older than its commit)")


@pytest.mark.parametrize("commit", ["--all", "HEAD", "^HEAD", "HEAD\nHEAD", "c" * 400])
def test_what_is_no_commit_is_not_asked_for(repository: GitRepository, tmp_path: Path, commit: str) -> None:
    store(tmp_path / "history", "20260130", commit=commit)
    assert len(read(tmp_path / "history", repository.path).trials) == 3


@pytest.mark.parametrize("form", ["{folder}", "file://{folder}", "simplecache::file://{folder}"])
def test_a_history_that_git_tracks_is_refused_by_whatever_name(repository: GitRepository, form: str) -> None:
    folder = repository.path / "kept"
    store(folder, "20260130")
    location = form.format(folder=folder)
    assert open_history(location, Checkout(repository.path)).folder == folder
    repository.commit()
    with pytest.raises(UsageError, match=r"must not be in git, but git tracks kept/.*`git rm -r --cached kept`"):
        read(location, repository.path)


def test_a_history_elsewhere_lies_in_no_repository(repository: GitRepository) -> None:
    assert open_history("memory://kept", Checkout(repository.path)).folder is None


def test_a_file_that_is_not_ours_is_skipped_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store(tmp_path, "20260130")
    (file,) = tmp_path.rglob("trials/**/*.parquet")
    table = pq.ParquetFile(file).read()
    pq.write_table(table.set_column(table.schema.names.index("started_at"), "started_at", table["reason"]), file)
    assert read(tmp_path, tmp_path).trials.empty
    assert "1 file is skipped" in caplog.text


def portions(location: Path, checkout: Path) -> Kept[tuple[str, ...]]:
    """The runs of each portion of the summaries."""
    history = open_history(str(location), Checkout(checkout))
    return read_summary_portions(
        history, checkout, NOW, ("run_id",), lambda portion: tuple(sorted(set(portion["run_id"].to_pylist())))
    )


def test_summaries_come_some_runs_at_a_time_the_oldest_month_first(tmp_path: Path) -> None:
    days = ("20260131", "20251231", "20260130", "20251130")
    for day in days:
        store(tmp_path, day)
    kept = portions(tmp_path, tmp_path)
    assert [run for part in kept.parts for run in part] == [a_run_id(day) for day in sorted(days)]
    assert (len(kept.parts), kept.left_out) == (3, "")
    assert portions(tmp_path / "none", tmp_path) == Kept([])


def test_a_suite_of_a_run_that_stands_in_the_files_of_two_months_counts_once(tmp_path: Path) -> None:
    store(tmp_path, "20251130")
    store(tmp_path, "20260130")
    (tmp_path / "summaries/2026-02-01").mkdir()
    again = tmp_path / f"summaries/2026-02-01/{a_run_id('20260201')}.parquet"
    shutil.copy(tmp_path / f"summaries/2026-01-30/{a_run_id('20260130')}.parquet", again)
    kept = portions(tmp_path, tmp_path)
    assert kept.parts == [(a_run_id("20251130"),), (a_run_id("20260130"),)]
    assert "1 run of the history (1 task)" in kept.left_out
    assert "a suite stands in several files of it" in kept.left_out
