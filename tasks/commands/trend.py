"""Trend: the summaries of the history in; what changed, and one point per run and suite, out."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from statistics import fmean, median
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.commands import trend_changes
from passgate.tasks.errors import UsageError
from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.trend import RunStamp, Trend, TrendPeriod
from passgate.tasks.model.trial import single_models
from passgate.tasks.stats.change_points import FALSE_ALARMS
from passgate.tasks.stats.estimators import suite_interval

_METRICS: Final = ("tool_call_accuracy", "loop_rate", "retry_rate", "policy_adherence", "injection_success_rate")
_OF_RUN: Final = ("gate", "agent", "git_commit", "passgate_version")
_SUMS: Final = ("passed", "failed", "errors", "total_cost")
_OF_POINTS: Final = (
    *("run_id", "suite", "task_id", *_OF_RUN, *_SUMS, *_METRICS),
    *("value", "started_at", "ended_at", "wall_times"),
)
COLUMNS: Final = tuple(dict.fromkeys((*_OF_POINTS, *trend_changes.COLUMNS)))
"""The columns of the summaries that a trend is read from."""
_PERCENTS: Final = (50, 95)
_WEEK: Final = timedelta(days=7)
_MEANS: Final = ("cost", "latency_p50_seconds", "latency_p95_seconds", *_METRICS)


class By(StrEnum):
    """The periods of a trend."""

    RUN = "run"
    DAY = "day"
    WEEK = "week"
    VERSION = "version"


@dataclass(frozen=True)
class TrendRequest:
    """Which runs and tasks a trend is about; `None` means all, and of gates and agents those of the newest run."""

    gate: GateName | None = None
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    by: By = By.WEEK


def trend_of(summaries: pa.Table, request: TrendRequest) -> Trend:
    """What these summaries say of one gate and agent. Raises `UsageError` where no run is left, with what there is."""
    shown, gate, agent = _chosen(summaries, request)
    points = trend_points(shown)
    days = {run_id: _day(run_id) for run_id in sorted({point.run_id for point in points})}
    stamps = _stamps(points, days)
    newest = max(days.values())
    since = newest - _WEEK + timedelta(days=1)
    week = [point for point in points if days[point.run_id] >= since]
    before = [point for point in points if since - _WEEK <= days[point.run_id] < since]
    others = (
        summaries.group_by(["gate", "agent"]).aggregate([]).sort_by([("gate", "ascending"), ("agent", "ascending")])
    )
    return Trend(
        gate=gate,
        agent=agent,
        runs=len(days),
        first=stamps[0],
        last=stamps[-1],
        changes=trend_changes.trend_changes(shown),
        last_week=_periods(week, lambda _: "last 7 days"),
        week_before=_periods(before, lambda _: "7 days before"),
        flaky=trend_changes.flaky_tasks(shown),
        seconds_per_verdict=_seconds_per_verdict(week),
        cost_per_verdict=_cost_per_verdict(week),
        periods=_periods(points, _labels(request.by, days)),
        points=tuple(points),
        since=since.isoformat(),
        not_shown=tuple(
            f"{one['gate']} of {one['agent']}" for one in others.to_pylist() if one != {"gate": gate, "agent": agent}
        ),
        false_alarms=FALSE_ALARMS,
    )


def _chosen(summaries: pa.Table, request: TrendRequest) -> tuple[pa.Table, GateName, str]:
    """The rows of a trend with their gate and agent."""
    shown = summaries
    for column, value in (("gate", request.gate), ("agent", request.agent), ("task_id", request.task)):
        if value is not None:
            shown = shown.filter(pc.equal(shown[column], str(value)))
    if request.model is not None:
        names = [
            names for names in pc.unique(shown["model"]).to_pylist() if request.model in single_models(names or "")
        ]
        shown = shown.filter(pc.is_in(shown["model"], pa.array(names, pa.string())))
    if not len(shown):
        raise UsageError(f"the history has no such runs; {_known(summaries)}")
    newest = shown.filter(pc.equal(shown["run_id"], pc.max(shown["run_id"])))
    gate, agent = newest["gate"][0].as_py(), newest["agent"][0].as_py()
    of_both = pc.and_(pc.equal(shown["gate"], gate), pc.equal(shown["agent"], agent))
    return shown.filter(of_both), GateName(gate), agent


def _known(summaries: pa.Table) -> str:
    agents = sorted(pc.unique(summaries["agent"]).to_pylist())
    gates = sorted(pc.unique(summaries["gate"]).to_pylist())
    return f"it has runs of {', '.join(agents)} at {', '.join(gates)}"


def _day(run_id: str) -> date:
    return datetime.strptime(run_id[:8], "%Y%m%d").replace(tzinfo=UTC).date()


def _stamps(points: Sequence[TrendPoint], days: dict[str, date]) -> list[RunStamp]:
    commits = {point.run_id: point.git_commit for point in points}
    return [RunStamp(run_id=run_id, day=day.isoformat(), git_commit=commits[run_id]) for run_id, day in days.items()]


def _labels(by: By, days: dict[str, date]) -> Callable[[TrendPoint], str]:
    match by:
        case By.RUN:
            return lambda point: point.run_id
        case By.DAY:
            return lambda point: days[point.run_id].isoformat()
        case By.WEEK:
            return lambda point: f"{days[point.run_id]:%G-W%V}"
        case By.VERSION:
            return lambda point: point.passgate_version


def _periods(points: Iterable[TrendPoint], label: Callable[[TrendPoint], str]) -> tuple[TrendPeriod, ...]:
    """The points of each suite and period together, in the order of suites and time."""
    order = {suite: number for number, suite in enumerate(Suite)}
    ordered = sorted(points, key=lambda point: (order[point.suite], point.run_id))
    # A version may come back; its runs are then two periods.
    return tuple(
        _period(suite, name, list(group))
        for (suite, name), group in groupby(ordered, lambda point: (point.suite, label(point)))
    )


def _period(suite: Suite, label: str, points: Sequence[TrendPoint]) -> TrendPeriod:
    values = [point.value for point in points if point.value is not None]
    value = fmean(values) if values else None
    low, high = (None, None) if value is None else suite_interval(value, points[-1].tasks)
    return TrendPeriod(
        suite=suite,
        label=label,
        runs=len(points),
        tasks=points[-1].tasks,
        trials_passed=sum(point.trials_passed for point in points),
        trials_measured=sum(point.trials_measured for point in points),
        trials_error=sum(point.trials_error for point in points),
        value=value,
        low=low,
        high=high,
        **{name: _mean([getattr(point, name) for point in points]) for name in _MEANS},
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _seconds_per_verdict(points: Iterable[TrendPoint]) -> float | None:
    ends: dict[str, datetime] = {}
    for point in points:
        if point.ended_at is not None:
            ends[point.run_id] = max(point.ended_at, ends.get(point.run_id, point.ended_at))
    began = {run_id: datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for run_id in ends}
    return median((ends[run_id] - began[run_id]).total_seconds() for run_id in ends) if ends else None


def _cost_per_verdict(points: Sequence[TrendPoint]) -> float | None:
    costs = [point.cost for point in points if point.cost is not None]
    return sum(costs) / len({point.run_id for point in points}) if costs else None


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
