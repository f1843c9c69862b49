"""Trend: the rows of the history in, one point per run and suite out."""

import math
from statistics import fmean
from typing import Final, NamedTuple

import pandas as pd

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import GateName, Metric, SequentialTest, Suite
from passgate.tasks.stats.decision import decide, in_order, score_of
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k, percentile, suite_interval

COLUMNS = (
    "run_id",
    "suite",
    "task_id",
    "gate",
    "started_at",
    "agent",
    "trial",
    "k",
    "metric",
    "sequential",
    "status",
    "score",
    "cost",
    "unmeasured_cost",
    "wall_time_seconds",
)
"""What a trend is read from."""
_TOLD: Final = ("passed", "failed", "error")
_ESTIMATORS: Final = {Metric.PASS_AT_K: pass_at_k, Metric.PASS_HAT_K: pass_hat_k}


def trend_points(trials: pd.DataFrame) -> list[TrendPoint]:
    """What the history says of each suite in each run, the oldest run first. Confirming trials cost what they cost and
    count for nothing else.
    """
    if trials.empty:
        return []
    groups = trials.groupby(["run_id", "suite"], sort=True)
    return [_point(str(run_id), Suite(str(suite)), rows) for (run_id, suite), rows in groups]


def _point(run_id: str, suite: Suite, rows: pd.DataFrame) -> TrendPoint:
    costs = pd.concat([rows["cost"], rows["unmeasured_cost"]]).dropna()
    rows = rows[rows["trial"] < rows["k"]]
    counts = [_counts(task_rows) for _, task_rows in rows.groupby("task_id", sort=True)]
    measured = rows[rows["status"].isin(_TOLD[:2])]
    value = fmean(task.value for task in counts)
    known = not math.isnan(value)  # a task with fewer than k trials has no value
    low, high = suite_interval(value, len(counts)) if known else (None, None)
    return TrendPoint(
        run_id=run_id,
        gate=GateName(rows["gate"].iloc[0]),
        suite=suite,
        started_at=rows["started_at"].min().to_pydatetime(),
        agent=str(rows["agent"].iloc[0]),
        tasks=len(counts),
        trials_passed=sum(task.c for task in counts),
        trials_measured=sum(task.n for task in counts),
        trials_error=int((rows["status"] == "error").sum()),
        value=value if known else None,
        low=low,
        high=high,
        cost=float(costs.sum()) if len(costs) else None,
        latency_p95_seconds=percentile(list(measured["wall_time_seconds"].dropna()), 95),
    )


class TaskCounts(NamedTuple):
    """One task's trials: n measured, c passed, and the value of its metric; NaN where they do not tell it."""

    n: int
    c: int
    value: float


def _counts(rows: pd.DataFrame) -> TaskCounts:
    statuses = rows["status"].value_counts()
    c, failed, errors = (int(statuses.get(status, 0)) for status in _TOLD)
    n, k = c + failed, int(rows["k"].iloc[0])
    metric, sequential = Metric(rows["metric"].iloc[0]), rows["sequential"].iloc[0]
    if isinstance(sequential, str):
        return TaskCounts(n, c, _accepted(rows, SequentialTest.model_validate_json(sequential), k))
    if metric not in _ESTIMATORS:
        score = score_of(metric, list(rows["score"].dropna()), k)
        return TaskCounts(n, c, math.nan if score is None else score)
    if n < k and not errors and len(rows) == k:
        # What was not run was not needed, or there was no money for it: the value is known only if it was not needed.
        return TaskCounts(n, c, _value(decide(metric, passed=c, failed=failed, planned=k)))
    return TaskCounts(n, c, float(_ESTIMATORS[metric](n, c, k)))


def _accepted(rows: pd.DataFrame, test: SequentialTest, k: int) -> float:
    """1 where a sequential test accepts the task, 0 where it rejects it."""
    measured = rows[rows["status"].isin(_TOLD[:2])]
    outcomes = zip(measured["trial"].tolist(), (measured["status"] == _TOLD[0]).tolist(), strict=True)
    metric = Metric(rows["metric"].iloc[0])
    return _value(decide(metric, passed=0, failed=0, planned=k, sequential=test, outcomes=in_order(outcomes, k)))


def _value(state: TaskState) -> float:
    return math.nan if state.indicator is None else state.indicator
