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
from passgate.tasks.history.dataset import ALL_DAYS, Days, History, refuse_foreign_rows
from passgate.tasks.history.encoding import Codes, codes_of, encoded
from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.trend import RunStamp, Trend, TrendPeriod
from passgate.tasks.model.trial import single_models
from passgate.tasks.stats.change_points import FALSE_ALARMS
from passgate.tasks.stats.estimators import suite_interval

COLUMNS: Final = tuple(dict.fromkeys((*POINT_COLUMNS, *trend_changes.COLUMNS, "git_branch")))
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
    branch: str | None = None


@dataclass(frozen=True)
class TrendPart:
    """What a trend needs of some runs, which takes little of the memory that their summaries do."""

    runs: frozenset[tuple[str, str]]
    """The gates and agents that have runs, also of those that the request leaves out."""
    points: tuple[TrendPoint, ...]
    rows: pa.Table
    """As of `trend_changes.change_rows`."""


def trend_part(summaries: pa.Table, request: TrendRequest) -> TrendPart:
    """The part of a trend that the summaries of some runs are, encoded or not, with `COLUMNS`."""
    summaries = encoded(summaries)
    kept = _asked_for(summaries, request)
    pairs = summaries.group_by(["gate", "agent"]).aggregate([])
    runs = frozenset(zip(pairs["gate"].to_pylist(), pairs["agent"].to_pylist(), strict=True))
    return TrendPart(runs, tuple(trend_points(kept)), trend_changes.change_rows(kept))


def trend_of(parts: Sequence[TrendPart], request: TrendRequest) -> Trend:
    """What the history says of one gate and agent. Raises `UsageError` where no run is left, with what there is."""
    runs = sorted({pair for part in parts for pair in part.runs})
    found = sorted((point for part in parts for point in part.points), key=lambda point: (point.run_id, point.suite))
    if not found:
        raise UsageError(f"the history has no runs {_asked(request)}; {_known(runs)}")
    gate, agent = found[-1].gate, found[-1].agent
    points = [point for point in found if (point.gate, point.agent) == (gate, agent)]
    rows = trend_changes.joined_rows([part.rows for part in parts], gate, agent)
    days = {run_id: _began(run_id).date() for run_id in sorted({point.run_id for point in points})}
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
        changes=trend_changes.trend_changes(rows),
        last_week=_periods(week, lambda _: "last 7 days"),
        week_before=_periods(before, lambda _: "7 days before"),
        flaky=trend_changes.flaky_tasks(rows),
        seconds_per_verdict=_seconds_per_verdict(week),
        cost_per_verdict=_cost_per_verdict(week),
        periods=_periods(points, _labels(request.by, days)),
        points=tuple(points),
        since=since.isoformat(),
        not_shown=tuple(f"{one} of {other}" for one, other in runs if (one, other) != (gate, agent)),
        false_alarms=FALSE_ALARMS,
    )


@refuse_foreign_rows()
def read_trend(history: History, request: TrendRequest, days: Days = ALL_DAYS, suite: str | None = None) -> Trend:
    """The trend of a history.

    Raises `UsageError` where no run is left, `StorageError` for a history that cannot be read.
    """
    portions = history.encoded_portions(COLUMNS, days, suite)
    parts = [trend_part(portion, request) for portion in portions if len(portion)]
    if not parts:
        nothing = "no runs yet, or none of these days and this suite: `passgate run` makes the first"
        raise UsageError(f"the history {history.location} has {nothing}")
    return trend_of(parts, request)


def _asked_for(summaries: pa.Table, request: TrendRequest) -> pa.Table:
    kept = np.ones(len(summaries), dtype=bool)
    texts = {"gate": request.gate, "agent": request.agent, "task_id": request.task, "git_branch": request.branch}
    for column, value in texts.items():
        if value is not None:
            kept &= _is(codes_of(summaries[column]), str(value).__eq__)
    if request.model is not None:
        kept &= _is(codes_of(summaries["model"]), lambda names: request.model in single_models(names))
    return summaries if kept.all() else summaries.filter(pa.array(kept))


def _is(codes: Codes, fits: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Which rows have a text that fits."""
    of_names = np.array([*map(fits, codes.names), False])
    return of_names[codes.numbers]


def _asked(request: TrendRequest) -> str:
    """`of the agent oracle and of the task fix-1`."""
    named = {"gate": request.gate, "agent": request.agent, "model": request.model, "task": request.task}
    return " and ".join(f"of the {what} {name}" for what, name in named.items() if name is not None)


def _known(runs: Iterable[tuple[str, str]]) -> str:
    gates, agents = (", ".join(dict.fromkeys(names)) for names in zip(*runs, strict=True))
    return f"it has runs of {agents} at {gates}"


def _began(run_id: str) -> datetime:
    return datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


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
    return median((end - _began(run_id)).total_seconds() for run_id, end in ends.items()) if ends else None


def _cost_per_verdict(points: Sequence[TrendPoint]) -> float | None:
    costs = [point.cost for point in points if point.cost is not None]
    return sum(costs) / len({point.run_id for point in points}) if costs else None
