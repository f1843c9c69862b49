"""What the history says of each suite in each run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from bench.generated_history import night_id

from passgate.flows.evaluate import drift_findings
from passgate.tasks.commands.trend import make_trend, new_falls, trend_points
from passgate.tasks.history.columns import summary_schema, trials_table
from passgate.tasks.history.summaries import task_summaries
from passgate.tasks.model.task import EvalTask, GateName, Metric, Suite
from passgate.tasks.model.trial import Trial, TrialMetrics
from tests.builders import STARTED, a_plan, a_policy, a_task, a_trial, measured, trials_of
from tests.unit.commands.test_trend_changes import REGRESSION, WHOLE, history

GOLDEN, OPEN = a_task(), a_task(task_id="open", suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K)


def rows(run_id: str, *groups: tuple[EvalTask, str], **metrics: Any) -> pd.DataFrame:
    return frame([trial for task, statuses in groups for trial in trials_of(task, statuses, **metrics)], run_id)


def frame(trials: Sequence[Trial], run_id: str = "run-1") -> pd.DataFrame:
    plan = a_plan(run_id=run_id)
    frame: pd.DataFrame = task_summaries(trials_table(trials, plan)).to_pandas()
    return frame


def test_a_point_per_run_and_suite_the_oldest_first() -> None:
    trials = pd.concat([rows("run-2", (GOLDEN, "ppp")), rows("run-1", (OPEN, "fpf"), (GOLDEN, "ppf"))])
    assert [(point.run_id, point.suite, point.value) for point in trend_points(trials)] == [
        ("run-1", Suite.GOLDEN, 0.0),
        ("run-1", Suite.OPEN_ENDED, 1.0),
        ("run-2", Suite.GOLDEN, 1.0),
    ]
    assert trend_points(summary_schema().empty_table().to_pandas()) == []


def test_the_figures_of_a_point_in_which_each_task_counts_by_its_own_rule() -> None:
    any_of_k = a_task(task_id="any", metric=Metric.PASS_AT_K)
    (point,) = trend_points(rows("run-1", (GOLDEN, "ppf"), (any_of_k, "ppf"), cost=0.5, wall_time_seconds=2.0))
    assert (point.gate, point.agent, point.started_at) == (GateName.CI_MERGE, "cli:my-agent", STARTED)
    assert (point.tasks, point.trials_passed, point.trials_measured, point.trials_error) == (2, 4, 6, 0)
    assert (point.value, point.cost, point.latency_p95_seconds) == (0.5, 3.0, 2.0)
    assert point.low < 0.5 < point.high


def test_errors_are_missing_data() -> None:
    (point,) = trend_points(rows("run-1", (GOLDEN, "ppe")))
    assert (point.trials_passed, point.trials_measured, point.trials_error) == (2, 2, 1)
    assert (point.value, point.low, point.high) == (None, None, None)
    assert (point.cost, point.latency_p95_seconds) == (None, None)


def test_a_run_begins_with_its_first_trial_and_metrics_come_from_the_trials_in_which_they_were_measured() -> None:
    trials = [
        a_trial(GOLDEN, 0, started_at=datetime(2026, 3, 1, tzinfo=UTC)),
        a_trial(GOLDEN, 1, metrics=TrialMetrics(cost=0.5, wall_time_seconds=1.0)),
        a_trial(GOLDEN, 2, metrics=TrialMetrics(wall_time_seconds=3.0)),
    ]
    (point,) = trend_points(frame(trials))
    assert (point.started_at, point.cost, point.latency_p95_seconds) == (STARTED, 0.5, 3.0)


def test_a_suite_has_no_point_in_a_run_that_only_confirmed_what_it_reused() -> None:
    assert trend_points(frame([a_trial(GOLDEN, GOLDEN.k)])) == []


@pytest.mark.parametrize(("scores", "value"), [((0.5, 1.0), 0.75), ((0.5,), None)])
def test_a_task_that_its_scores_decide_has_their_mean_as_value(scores: tuple[float, ...], value: float | None) -> None:
    scored = a_task(task_id="scored", metric=Metric.MEAN, k=2)
    (point,) = trend_points(frame([a_trial(scored, number, score=score) for number, score in enumerate(scores)]))
    assert point.value == value


@pytest.mark.parametrize(
    ("rule", "statuses", "value"),
    [
        ({"metric": Metric.PASS_HAT_K}, "pfl", 0.0),
        ({"metric": Metric.PASS_AT_K}, "fpl", 1.0),
        ({"metric": Metric.PASS_HAT_K}, "pnn", None),
        ({"metric": Metric.PASS_HAT_K}, "fnn", 0.0),
        ({"metric": Metric.PASS_AT_K}, "fnn", None),
        ({"metric": Metric.PASS_HAT_K}, "efl", None),
        ({"metric": Metric.PASS_HAT_K}, "pf-", None),
    ],
)
def test_a_stopped_task_has_the_value_of_all_its_trials(
    rule: dict[str, Any], statuses: str, value: float | None
) -> None:
    task = a_task(**rule)
    (point,) = trend_points(rows("run-1", (task, statuses)))
    (of_verdict,) = measured((task, trials_of(task, statuses))).suites
    assert point.value == of_verdict.value == value


def test_confirming_trials_cost_and_count_for_nothing_else() -> None:
    more = [a_trial(GOLDEN, number, metrics=TrialMetrics(cost=0.5, wall_time_seconds=9.0)) for number in (3, 4)]
    (point,) = trend_points(frame([*trials_of(GOLDEN, "ppf", cost=0.25, wall_time_seconds=1.0), *more]))
    assert (point.trials_passed, point.trials_measured, point.value) == (2, 3, 0.0)
    assert (point.cost, point.latency_p95_seconds) == (1.75, 1.0)


def test_the_run_after_which_a_fall_can_first_be_seen_tells_it_and_later_ones_do_not() -> None:
    found = make_trend(history(REGRESSION), WHOLE)
    (change,) = [one for one in found.changes if one.is_worse]
    (told,) = new_falls(change.told_by, found)
    assert "pass rate" in told
    assert change.tasks[0] in told
    assert new_falls(night_id(59), found) == ()


@pytest.mark.parametrize("alarm", [False, {"drift": False}])
def test_a_gate_that_does_not_ask_reads_no_history(alarm: Any) -> None:
    policy = a_policy(alarm=alarm).model_copy(update={"history": "no-such-kind://anywhere"})
    assert drift_findings(a_plan(policy=policy)) == ()
