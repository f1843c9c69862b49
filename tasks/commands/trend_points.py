"""Summaries of runs in, a point per run and suite out."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.encoding import Codes, codes_of, encoded
from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.stats.estimators import suite_interval

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
METRICS: Final = ("tool_call_accuracy", "loop_rate", "retry_rate", "policy_adherence", "injection_success_rate")
_OF_RUN: Final = ("gate", "agent", "git_commit", "passgate_version")
_COUNTS: Final = ("passed", "failed", "errors")
POINT_COLUMNS: Final = (
    *("run_id", "suite", *_OF_RUN, *_COUNTS, *METRICS),
    *("value", "total_cost", "started_at", "ended_at", "wall_times"),
)
"""The columns of the summaries that points are made from."""
_PERCENTS: Final = (50, 95)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def trend_points(summaries: pa.Table) -> list[TrendPoint]:
    """One point per run and suite, the oldest run first. Confirming trials count for their cost and nothing else.

    A suite has no point in a run that only confirmed what it reused.
    """
    if not len(summaries):
        return []
    rows, starts = _grouped(encoded(summaries.select(list(POINT_COLUMNS))))
    texts = {name: codes_of(rows[name]) for name in ("run_id", "suite", *_OF_RUN)}
    columns: dict[str, list[Any]] = {name: _firsts(codes, starts) for name, codes in texts.items()}
    sizes = np.diff(starts, append=len(rows))
    columns |= {name: np.add.reduceat(_numbers(rows[name]), starts).astype(np.int64).tolist() for name in _COUNTS}
    columns |= {name: _known(_means(_numbers(rows[name]), starts)) for name in METRICS}
    values = _numbers(rows["value"])
    # A task without a value, as one with an error, leaves its suite without one.
    columns["value"] = _known(np.add.reduceat(values, starts) / sizes)
    columns["cost"] = _known(_sums(_numbers(rows["total_cost"]), starts))
    columns["started_at"] = _times(np.fmin.reduceat(_microseconds(rows["started_at"]), starts))
    columns["ended_at"] = _times(np.fmax.reduceat(_microseconds(rows["ended_at"]), starts))
    columns["tasks"] = sizes.tolist()
    columns["latencies"] = _latencies(rows["wall_times"], starts)
    names = list(columns)
    groups = (dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    return [_point(group) for group in groups if group["started_at"] is not None]


def _grouped(rows: pa.Table) -> tuple[pa.Table, Integers]:
    """The rows in the order of runs and suites, and where each of these begins."""
    runs, suites = codes_of(rows["run_id"]), codes_of(rows["suite"])
    keys = runs.numbers * len(suites.names) + suites.numbers
    if np.any(np.diff(keys) < 0):
        order = np.argsort(keys, kind="stable")
        rows, keys = rows.take(pa.array(order)), keys[order]
    return rows, np.concatenate(([0], np.flatnonzero(np.diff(keys)) + 1))


def _point(group: dict[str, Any]) -> TrendPoint:
    value, tasks = group["value"], group["tasks"]
    low, high = suite_interval(value, tasks) if value is not None else (None, None)
    p50, p95 = group["latencies"]
    return TrendPoint(
        low=low,
        high=high,
        latency_p50_seconds=p50,
        latency_p95_seconds=p95,
        trials_passed=group["passed"],
        trials_measured=group["passed"] + group["failed"],
        trials_error=group["errors"],
        **{name: group[name] for name in ("run_id", "suite", *_OF_RUN, *METRICS)},
        **{name: group[name] for name in ("value", "cost", "started_at", "ended_at", "tasks")},
    )


def _firsts(codes: Codes, starts: Integers) -> list[str]:
    return [codes.at(start) for start in starts.tolist()]


def _numbers(column: pa.ChunkedArray) -> Floats:
    """The values, NaN for what is not known."""
    values: Floats = column.to_numpy().astype(np.float64, copy=False)
    return values


def _microseconds(column: pa.ChunkedArray) -> Floats:
    return _numbers(pc.cast(column, pa.int64()))


def _times(microseconds: Floats) -> list[datetime | None]:
    return [None if np.isnan(one) else _EPOCH + timedelta(microseconds=int(one)) for one in microseconds]


def _sums(values: Floats, starts: Integers) -> Floats:
    """The sum of what is known of each group; NaN where nothing is."""
    known = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    return np.where(known > 0, np.add.reduceat(np.nan_to_num(values), starts), np.nan)


def _means(values: Floats, starts: Integers) -> Floats:
    known = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    means: Floats = _sums(values, starts) / np.maximum(known, 1)
    return means


def _known(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _latencies(wall_times: pa.ChunkedArray, starts: Integers) -> list[tuple[float | None, ...]]:
    """The percentiles of the wall times of each group."""
    lengths = pc.fill_null(pc.list_value_length(wall_times), 0).to_numpy()
    values = pc.list_flatten(wall_times).to_numpy()
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    first, last = bounds[starts], bounds[np.append(starts[1:], len(lengths))]
    return [_percentiles(values[begin:end]) for begin, end in zip(first, last, strict=True)]


def _percentiles(values: Floats) -> tuple[float | None, ...]:
    """As `estimators.percentile` has them, without sorting the values."""
    if not len(values):
        return (None,) * len(_PERCENTS)
    places = [max(0, math.ceil(len(values) * percent / 100) - 1) for percent in _PERCENTS]
    return tuple(float(value) for value in np.partition(values, places)[places])
