"""What the history says of each suite in each run."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from passgate.tasks.commands.trend import COLUMNS, trend_points
from passgate.tasks.history.columns import row, summary_schema, table_of
from passgate.tasks.history.summaries import summarised
from passgate.tasks.model.task import EvalTask, GateName, Metric, SequentialTest, Suite
from passgate.tasks.model.trial import TrialMetrics
from tests.builders import STARTED, a_plan, a_task, a_trial, measured, trials_of

GOLDEN, OPEN = a_task(), a_task(task_id="open", suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K)


def rows(run_id: str, *groups: tuple[EvalTask, str], **metrics: Any) -> pa.Table:
    plan = a_plan(run_id=run_id)
    trials = [trial for task, statuses in groups for trial in trials_of(task, statuses, **metrics)]
    return frame([row(trial, plan) for trial in trials])


def frame(made: list[dict[str, Any]]) -> pa.Table:
    return summarised(table_of(made)).select(list(COLUMNS))


def test_a_point_per_run_and_suite_the_oldest_first() -> None:
    trials = pa.concat_tables([rows("run-2", (GOLDEN, "ppp")), rows("run-1", (OPEN, "fpf"), (GOLDEN, "ppf"))])
    points = trend_points(trials)
    assert [(point.run_id, point.suite) for point in points] == [
        ("run-1", Suite.GOLDEN),
        ("run-1", Suite.OPEN_ENDED),
        ("run-2", Suite.GOLDEN),
    ]
    assert [point.value for point in points] == [0.0, 1.0, 1.0]


def test_the_figures_of_a_point() -> None:
    other = a_task(task_id="other")
    (point,) = trend_points(rows("run-1", (GOLDEN, "ppp"), (other, "ppf"), cost=0.5, wall_time_seconds=2.0))
    assert (point.gate, point.agent, point.started_at) == (GateName.CI_MERGE, "cli:my-agent", STARTED)
    assert (point.tasks, point.trials_passed, point.trials_measured, point.trials_error) == (2, 5, 6, 0)
    assert point.value == 0.5
    assert point.low is not None
    assert point.high is not None
    assert point.low < 0.5 < point.high
    assert (point.cost, point.latency_p95_seconds) == (3.0, 2.0)


def test_errors_are_missing_data() -> None:
    (point,) = trend_points(rows("run-1", (GOLDEN, "ppe")))
    assert (point.trials_passed, point.trials_measured, point.trials_error) == (2, 2, 1)
    assert (point.value, point.low, point.high) == (None, None, None)
    assert (point.cost, point.latency_p95_seconds) == (None, None)


def test_a_run_begins_with_its_first_trial() -> None:
    plan = a_plan()
    later = datetime(2026, 3, 1, tzinfo=UTC)
    (point,) = trend_points(frame([row(a_trial(GOLDEN, 0, started_at=later), plan), row(a_trial(GOLDEN, 1), plan)]))
    assert point.started_at == STARTED


def test_an_empty_history_has_no_trend() -> None:
    assert trend_points(summary_schema().empty_table().select(list(COLUMNS))) == []


def test_each_task_counts_by_its_own_rule() -> None:
    any_of_k = a_task(task_id="any", metric=Metric.PASS_AT_K)
    (point,) = trend_points(rows("run-1", (GOLDEN, "ppf"), (any_of_k, "ppf")))
    assert point.value == 0.5


def test_metrics_come_from_the_trials_in_which_they_were_measured() -> None:
    plan = a_plan()
    trials = [
        a_trial(GOLDEN, 0, metrics=TrialMetrics(cost=0.5, wall_time_seconds=1.0)),
        a_trial(GOLDEN, 1),
        a_trial(GOLDEN, 2, metrics=TrialMetrics(wall_time_seconds=3.0)),
    ]
    (point,) = trend_points(frame([row(trial, plan) for trial in trials]))
    assert (point.cost, point.latency_p95_seconds) == (0.5, 3.0)


def test_a_task_that_its_scores_decide_has_their_mean_as_value() -> None:
    scored = a_task(task_id="scored", metric=Metric.MEAN, k=2)
    plan = a_plan(run_id="run-1")
    trials = [a_trial(scored, number, score=score) for number, score in enumerate((0.5, 1.0))]
    (point,) = trend_points(frame([row(trial, plan) for trial in trials]))
    assert point.value == 0.75
    (short,) = trend_points(frame([row(trials[0], plan)]))
    assert short.value is None


@pytest.mark.parametrize(
    ("metric", "statuses", "value"),
    [
        (Metric.PASS_HAT_K, "pfl", 0.0),
        (Metric.PASS_AT_K, "fpl", 1.0),
        (Metric.PASS_HAT_K, "pnn", None),
        (Metric.PASS_HAT_K, "fnn", 0.0),
        (Metric.PASS_AT_K, "fnn", None),
        (Metric.PASS_HAT_K, "efl", None),
        (Metric.PASS_HAT_K, "pf-", None),
    ],
)
def test_a_task_that_was_stopped_has_the_value_that_all_its_trials_would_have_given(
    metric: Metric, statuses: str, value: float | None
) -> None:
    task = a_task(metric=metric)
    (point,) = trend_points(rows("run-1", (task, statuses)))
    assert point.value == value
    (of_verdict,) = measured((task, trials_of(task, statuses))).suites
    assert of_verdict.value == value


@pytest.mark.parametrize(
    ("statuses", "value"), [("ppp" + "l" * 7, 1.0), ("fff" + "l" * 7, 0.0), ("pppfffffff", 1.0), ("ppneeeeeee", None)]
)
def test_a_task_that_a_sequential_test_decides_has_its_answer_as_value(statuses: str, value: float | None) -> None:
    task = a_task(k=10, sequential=SequentialTest(accept=0.8, reject=0.2))
    (point,) = trend_points(rows("run-1", (task, statuses)))
    assert point.value == value


def test_confirming_trials_cost_and_count_for_nothing_else() -> None:
    plan = a_plan(run_id="run-1")
    more = [a_trial(GOLDEN, number, metrics=TrialMetrics(cost=0.5, wall_time_seconds=9.0)) for number in (3, 4)]
    trials = [*trials_of(GOLDEN, "ppf", cost=0.25, wall_time_seconds=1.0), *more]
    (point,) = trend_points(frame([row(trial, plan) for trial in trials]))
    assert (point.trials_passed, point.trials_measured, point.value) == (2, 3, 0.0)
    assert (point.cost, point.latency_p95_seconds) == (1.75, 1.0)
