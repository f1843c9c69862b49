"""Trend: the rows of the history in, one point per run and suite out."""

import math
from statistics import fmean
from typing import NamedTuple

import pandas as pd

from passgate.tasks.model.task import GateName, Metric, Suite
from passgate.tasks.model.trend import TrendPoint
from passgate.tasks.stats.decision import score_of
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k
from passgate.tasks.stats.intervals import suite_interval
from passgate.tasks.stats.percentiles import percentile

COLUMNS = (
    "run_id",
    "suite",
    "task_id",
    "gate",
    "started_at",
    "agent",
    "k",
    "metric",
    "status",
    "score",
    "cost",
    "wall_time_seconds",
)
"""What a trend is read from."""


def trend_points(trials: pd.DataFrame) -> list[TrendPoint]:
    """What the history says of each suite in each run, the oldest run first."""
    if trials.empty:
        return []
    groups = trials.groupby(["run_id", "suite"], sort=True)
    return [_point(str(run_id), Suite(str(suite)), rows) for (run_id, suite), rows in groups]


def _point(run_id: str, suite: Suite, rows: pd.DataFrame) -> TrendPoint:
    counts = [_counts(task_rows) for _, task_rows in rows.groupby("task_id", sort=True)]
    value = fmean(task.value for task in counts)
    known = not math.isnan(value)  # a task with fewer than k trials has no value
    low, high = suite_interval(value, len(counts)) if known else (None, None)
    costs = rows["cost"].dropna()
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
        latency_p95_seconds=percentile(list(rows["wall_time_seconds"].dropna()), 95),
    )


class TaskCounts(NamedTuple):
    """One task's trials: n measured, c passed, and the value of its metric; NaN with fewer trials than it needs."""

    n: int
    c: int
    value: float


def _counts(rows: pd.DataFrame) -> TaskCounts:
    c = int((rows["status"] == "passed").sum())
    n = c + int((rows["status"] == "failed").sum())
    k = int(rows["k"].iloc[0])
    match metric := Metric(rows["metric"].iloc[0]):
        case Metric.PASS_AT_K:
            return TaskCounts(n, c, float(pass_at_k(n, c, k)))
        case Metric.PASS_HAT_K:
            return TaskCounts(n, c, float(pass_hat_k(n, c, k)))
        case _:
            score = score_of(metric, list(rows["score"].dropna()), k)
            return TaskCounts(n, c, math.nan if score is None else score)
