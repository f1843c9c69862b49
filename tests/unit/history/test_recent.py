"""The newest runs of a history."""

import pandas as pd

from passgate.tasks.history.baseline import COLUMNS
from passgate.tasks.history.recent import recent_runs
from passgate.tasks.model.run_view import EarlierRun


def rows(*trials: tuple[str, str, int, str]) -> pd.DataFrame:
    """Trials of golden tasks with k = 2: run, task, number, status."""
    plain = dict.fromkeys(COLUMNS) | {"suite": "golden", "k": 2}
    return pd.DataFrame(
        [
            plain | {"run_id": run, "task_id": task, "trial": number, "status": status}
            for run, task, number, status in trials
        ],
        columns=list(COLUMNS),
    )


def test_each_task_and_suite_has_its_runs_the_oldest_first() -> None:
    found = recent_runs(
        rows(
            ("2026-b", "x", 0, "passed"),
            ("2026-a", "x", 0, "failed"),
            ("2026-a", "x", 1, "passed"),
            ("2026-b", "y", 0, "failed"),
        ),
        "2026-z",
    )
    assert found["golden/x"] == (EarlierRun("2026-a", 1, 2), EarlierRun("2026-b", 1, 1))
    assert found["golden/y"] == (EarlierRun("2026-b", 0, 1),)
    assert found["golden"] == (EarlierRun("2026-a", 1, 2), EarlierRun("2026-b", 1, 2))


def test_only_the_newest_runs_before_this_one_count() -> None:
    many = rows(*((f"2026-{number:02}", "x", 0, "passed") for number in range(30)))
    found = recent_runs(many, "2026-25", most=3)
    assert [run.run_id for run in found["golden/x"]] == ["2026-22", "2026-23", "2026-24"]


def test_errors_and_confirming_trials_say_nothing_here() -> None:
    assert recent_runs(rows(("2026-a", "x", 0, "error"), ("2026-a", "x", 2, "passed")), "2026-z") == {}
    assert recent_runs(rows(), "2026-z") == {}
