"""Trend: the rows of the history in, one point per run and suite out."""

import math
from statistics import fmean
from typing import Final

import pandas as pd

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import GateName, Metric, SequentialTest, Suite
from passgate.tasks.stats.decision import decide, in_order, score_of
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k, percentile, suite_interval

_OF_RUN = ("run_id", "suite", "task_id", "gate", "started_at", "agent")
_OF_TRIAL = ("trial", "k", "metric", "sequential", "status", "score", "cost", "unmeasured_cost", "wall_time_seconds")
COLUMNS = (*_OF_RUN, *_OF_TRIAL)  # The columns of the history that a trend is read from
_STATUSES: Final = ("passed", "failed", "error")
_ESTIMATORS: Final = {Metric.PASS_AT_K: pass_at_k, Metric.PASS_HAT_K: pass_hat_k}


def trend_points(trials: pd.DataFrame) -> list[TrendPoint]:
    """One point per run and suite, the oldest run first. Confirming trials count for their cost and nothing else."""
    if trials.empty:
        return []
    groups = trials.groupby(["run_id", "suite"], sort=True)
    return [_point(str(run_id), Suite(str(suite)), rows) for (run_id, suite), rows in groups]


def _point(run_id: str, suite: Suite, rows: pd.DataFrame) -> TrendPoint:
    costs = pd.concat([rows["cost"], rows["unmeasured_cost"]]).dropna()  # of confirming trials too
    rows = rows[rows["trial"] < rows["k"]]
    values = [_value(task_rows) for _, task_rows in rows.groupby("task_id", sort=True)]
    measured = rows[rows["status"].isin(_STATUSES[:2])]
    value = fmean(values)
    known = not math.isnan(value)  # a task with fewer than k trials has no value
    low, high = suite_interval(value, len(values)) if known else (None, None)
    return TrendPoint(
        run_id=run_id,
        gate=GateName(rows["gate"].iloc[0]),
        suite=suite,
        started_at=rows["started_at"].min().to_pydatetime(),
        agent=str(rows["agent"].iloc[0]),
        tasks=len(values),
        trials_passed=int((rows["status"] == "passed").sum()),
        trials_measured=len(measured),
        trials_error=int((rows["status"] == "error").sum()),
        value=value if known else None,
        low=low,
        high=high,
        cost=float(costs.sum()) if len(costs) else None,
        latency_p95_seconds=percentile(list(measured["wall_time_seconds"].dropna()), 95),
    )


def _value(rows: pd.DataFrame) -> float:
    """The value of one task's metric; NaN if the trials do not give it."""
    statuses = rows["status"].value_counts()
    passed, failed, errors = (int(statuses.get(status, 0)) for status in _STATUSES)
    n, k = passed + failed, int(rows["k"].iloc[0])
    metric, sequential = Metric(rows["metric"].iloc[0]), rows["sequential"].iloc[0]
    if isinstance(sequential, str):
        measured = rows[rows["status"].isin(_STATUSES[:2])]
        outcomes = zip(measured["trial"].tolist(), (measured["status"] == "passed").tolist(), strict=True)
        test = SequentialTest.model_validate_json(sequential)
        state = decide(metric, passed=0, failed=0, planned=k, sequential=test, outcomes=in_order(outcomes, k))
    elif metric not in _ESTIMATORS:
        score = score_of(metric, list(rows["score"].dropna()), k)
        return math.nan if score is None else score
    elif n < k and not errors and len(rows) == k:
        # Early stopping left out the other trials, or there was no money for them. Only early stopping gives a value.
        state = decide(metric, passed=passed, failed=failed, planned=k)
    else:
        return float(_ESTIMATORS[metric](n, passed, k))
    return math.nan if state.indicator is None else state.indicator
