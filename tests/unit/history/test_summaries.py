"""A row per run and eval task beside the trials."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.summaries import task_summaries
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import STARTED, a_grade, a_plan, a_task, a_trial, a_violation, measured, trials_of

TASK, ATTACK = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)
COLUMNS = ("run_id", "suite", "task_id", "day", "outcomes", "value")
DAY, LATER = "2026-01-31", "2026-02-01"
FILE = Path(f"summaries/{DAY}/run-1.parquet")


def made_of(task: EvalTask, statuses: str, **metrics: Any) -> dict[str, Any]:
    (only,) = task_summaries(trials_table(trials_of(task, statuses, **metrics), a_plan(task))).to_pylist()
    return dict(only)


@given(st.text("pfenl", min_size=1, max_size=6), st.sampled_from([Metric.PASS_HAT_K, Metric.PASS_AT_K]))
def test_a_summary_says_what_the_verdict_says(statuses: str, metric: Metric) -> None:
    task = a_task(metric=metric, k=len(statuses))
    made = made_of(task, statuses)
    (of_task,) = measured((task, trials_of(task, statuses))).tasks
    assert (made["passed"], made["failed"]) == (of_task.passed, of_task.n - of_task.passed)
    assert (made["errors"], made["not_run"]) == (of_task.errors, of_task.not_run)
    (of_suite,) = measured((task, trials_of(task, statuses))).suites
    assert made["value"] == of_suite.value
    assert made["outcomes"] == statuses.replace("l", "n")


def test_metrics_are_means_of_what_was_measured_and_costs_are_sums() -> None:
    trials = [
        a_trial(TASK, 1, metrics=TrialMetrics(cost=0.5, wall_time_seconds=3.0, steps=4), player_cost=0.25),
        a_trial(TASK, 0, metrics=TrialMetrics(cost=0.5, wall_time_seconds=1.0, steps=5)),
        a_trial(TASK, 2, TrialStatus.ERROR, unmeasured_cost=2.0, metrics=TrialMetrics(wall_time_seconds=60.0)),
        a_trial(TASK, 3, metrics=TrialMetrics(cost=1.0, wall_time_seconds=9.0)),
    ]
    (made,) = task_summaries(trials_table(trials, a_plan(TASK))).to_pylist()
    assert (made["cost"], made["steps"], made["wall_times"]) == (0.5, 4.5, [1.0, 3.0])
    assert made["total_cost"] == 4.25
    assert (made["tool_call_accuracy"], made["confirming_passed"], made["outcomes"]) == (None, 1, "ppe")
    assert (made["started_at"], (made["ended_at"] - STARTED).total_seconds()) == (STARTED, 60)


def test_violations_models_and_confirming_trials_are_counted_and_the_unknown_is_null() -> None:
    bad = (a_grade(passed=False, violations=(a_violation(), a_violation())),)
    trials = [
        a_trial(TASK, 0, model="small, large"),
        a_trial(TASK, 1, TrialStatus.FAILED, grades=bad, model="large"),
        a_trial(TASK, 3, TrialStatus.FAILED, grades=bad),
    ]
    (made,) = task_summaries(trials_table(trials, a_plan(TASK))).to_pylist()
    assert (made["violations"], made["model"], made["confirming_failed"]) == (2, "large, small", 1)
    assert (made["total_cost"], made["cost"], made["tokens_in"], made["wall_times"]) == (None, None, None, [])
