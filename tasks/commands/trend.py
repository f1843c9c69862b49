"""Trend: the summaries of the history in, one point per run and suite out."""

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.stats.estimators import suite_interval

_METRICS: Final = ("tool_call_accuracy", "loop_rate", "retry_rate", "policy_adherence", "injection_success_rate")
_OF_RUN: Final = ("gate", "agent", "git_commit", "passgate_version")
_SUMS: Final = ("passed", "failed", "errors", "total_cost")
COLUMNS: Final = (
    *("run_id", "suite", "task_id", *_OF_RUN, *_SUMS, *_METRICS),
    *("value", "started_at", "ended_at", "wall_times"),
)
"""The columns of the summaries that a trend is read from."""
_PERCENTS: Final = (50, 95)


def trend_points(summaries: pa.Table) -> list[TrendPoint]:
    """One point per run and suite, the oldest run first. Confirming trials count for their cost and nothing else."""
    if not len(summaries):
        return []
    order = [("run_id", "ascending"), ("suite", "ascending")]
    summaries = summaries.sort_by(order)
    groups = (
        summaries.group_by(["run_id", "suite"], use_threads=False)
        .aggregate(
            [
                *((name, "first") for name in _OF_RUN),
                *((name, "sum") for name in _SUMS),
                *((name, "mean") for name in (*_METRICS, "value")),
                *((("value", "count"), ("task_id", "count"), ("started_at", "min"), ("ended_at", "max"))),
            ]
        )
        .sort_by(order)
    )
    latencies = _latencies(summaries["wall_times"], groups["task_id_count"].to_numpy())
    return [_point(group, *times) for group, times in zip(groups.to_pylist(), latencies, strict=True)]


def _point(group: dict[str, Any], p50: float | None, p95: float | None) -> TrendPoint:
    tasks = group["task_id_count"]
    # A task without a value, as one with an error, leaves its suite without one.
    value = group["value_mean"] if group["value_count"] == tasks else None
    low, high = suite_interval(value, tasks) if value is not None else (None, None)
    return TrendPoint(
        run_id=group["run_id"],
        gate=group["gate_first"],
        suite=group["suite"],
        started_at=group["started_at_min"],
        ended_at=group["ended_at_max"],
        agent=group["agent_first"],
        git_commit=group["git_commit_first"] or "",
        passgate_version=group["passgate_version_first"] or "",
        tasks=tasks,
        trials_passed=group["passed_sum"],
        trials_measured=group["passed_sum"] + group["failed_sum"],
        trials_error=group["errors_sum"],
        value=value,
        low=low,
        high=high,
        cost=group["total_cost_sum"],
        latency_p50_seconds=p50,
        latency_p95_seconds=p95,
        **{name: group[f"{name}_mean"] for name in _METRICS},
    )


def _latencies(wall_times: pa.ChunkedArray, tasks: npt.NDArray[np.int64]) -> list[tuple[float | None, ...]]:
    """The percentiles of each group's wall times; a group is so many tasks, one after the other."""
    lengths = pc.fill_null(pc.list_value_length(wall_times), 0).to_numpy()
    values = pc.list_flatten(wall_times).to_numpy()
    ends = np.cumsum(lengths)[np.cumsum(tasks) - 1]
    starts = np.concatenate(([0], ends[:-1]))
    return [_percentiles(values[start:end]) for start, end in zip(starts, ends, strict=True)]


def _percentiles(values: npt.NDArray[np.float64]) -> tuple[float | None, ...]:
    """As `estimators.percentile` has them, without sorting the values."""
    if not len(values):
        return (None,) * len(_PERCENTS)
    places = [max(0, math.ceil(len(values) * percent / 100) - 1) for percent in _PERCENTS]
    return tuple(float(value) for value in np.partition(values, places)[places])
