"""Trend: the summaries of the history in; what changed, and one point per run and suite, out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import groupby
from statistics import fmean, median
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from passgate.tasks.commands import trend_changes
from passgate.tasks.commands.trend_points import METRICS, POINT_COLUMNS, trend_points
from passgate.tasks.errors import UsageError
from passgate.tasks.history.encoding import Codes, codes_of, encoded
from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.trend import RunStamp, Trend, TrendPeriod
from passgate.tasks.model.trial import single_models
from passgate.tasks.stats.change_points import FALSE_ALARMS
from passgate.tasks.stats.estimators import suite_interval

COLUMNS: Final = tuple(dict.fromkeys((*POINT_COLUMNS, *trend_changes.COLUMNS)))
"""The columns of the summaries that a trend is read from."""
_WEEK: Final = timedelta(days=7)
_MEANS: Final = ("cost", "latency_p50_seconds", "latency_p95_seconds", *METRICS)


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
    summaries = encoded(summaries)
    shown, gate, agent = _chosen(summaries, request)
    points = trend_points(shown)
    days = {run_id: _day(run_id) for run_id in sorted({point.run_id for point in points})}
    stamps = _stamps(points, days)
    newest = max(days.values())
    since = newest - _WEEK + timedelta(days=1)
    week = [point for point in points if days[point.run_id] >= since]
    before = [point for point in points if since - _WEEK <= days[point.run_id] < since]
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
        not_shown=_not_shown(summaries, gate, agent),
        false_alarms=FALSE_ALARMS,
    )


def _chosen(summaries: pa.Table, request: TrendRequest) -> tuple[pa.Table, GateName, str]:
    """The rows of a trend with their gate and agent."""
    kept = np.ones(len(summaries), dtype=bool)
    for column, value in (("gate", request.gate), ("agent", request.agent), ("task_id", request.task)):
        if value is not None:
            kept &= _is(codes_of(summaries[column]), str(value).__eq__)
    if request.model is not None:
        kept &= _is(codes_of(summaries["model"]), lambda names: request.model in single_models(names))
    if not kept.any():
        raise UsageError(f"the history has no such runs; {_known(summaries)}")
    gates, agents = codes_of(summaries["gate"]), codes_of(summaries["agent"])
    newest = int(np.argmax(np.where(kept, codes_of(summaries["run_id"]).numbers, -1)))
    gate, agent = gates.at(newest), agents.at(newest)
    kept &= (gates.numbers == gates.numbers[newest]) & (agents.numbers == agents.numbers[newest])
    return summaries if kept.all() else summaries.filter(pa.array(kept)), GateName(gate), agent


def _is(codes: Codes, fits: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Which rows have a text that fits."""
    of_names = np.array([*map(fits, codes.names), False])
    return of_names[codes.numbers]


def _not_shown(summaries: pa.Table, gate: GateName, agent: str) -> tuple[str, ...]:
    """The other gates and agents that the history has runs of."""
    gates, agents = codes_of(summaries["gate"]), codes_of(summaries["agent"])
    pairs = np.unique(np.stack([gates.numbers, agents.numbers]), axis=1).T
    named = [(gates.names[one], agents.names[other]) for one, other in pairs]
    return tuple(f"{one} of {other}" for one, other in named if (one, other) != (gate, agent))


def _known(summaries: pa.Table) -> str:
    gates, agents = (codes_of(summaries[name]).without_unused().names for name in ("gate", "agent"))
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
