"""The trend of a history: what has changed, how each suite does, and which falls a run is the first to show."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from passgate.tasks.commands.trend_changes import flaky_tasks, trend_changes
from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.formats.loading import policy_or_default
from passgate.tasks.history.dataset import NEWEST, History, RunSelection, refuse_foreign_rows
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.model.history import RunStamp, Trend, TrendPeriod, TrendPoint
from passgate.tasks.model.names import Period
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.trial import single_models
from passgate.tasks.planning.plan import start_time
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import warn
from passgate.tasks.reports.trend import change_text, trend_html
from passgate.tasks.stats.change_points import FALSE_ALARMS
from passgate.tasks.stats.estimators import percentile, suite_interval
from passgate.tasks.stats.measurement import known_mean

_LONGEST_NAME: Final = 120
_WEEK: Final = timedelta(days=7)
_RATES: Final = ("tool_call_accuracy", "loop_rate", "retry_rate", "policy_adherence", "injection_success_rate")
_SUMS: Final = ("trials_passed", "trials_measured", "trials_error")
_MEANS: Final = ("cost", "latency_p50_seconds", "latency_p95_seconds", *_RATES)


@dataclass(frozen=True)
class TrendRequest:
    """Which runs and tasks a trend is about; `None` means all, and of gates and agents those of the newest run."""

    gate: GateName | None = None
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    by: Period = Period.WEEK
    branch: str | None = None


def trend_page(gate: GateName, agent: str, *, home: str) -> str:
    """Return the trend of a gate with an agent as HTML, with `home` as the link to all runs. Raises `PassgateError`."""
    policy, checkout = policy_or_default(Path("gates.yaml")), Checkout(Path.cwd())
    history = open_history(policy.history, checkout)
    branch = policy.into(checkout.baseline_branch).baseline.branch
    # Runs of changes show how the changes did, and not how the agent does.
    try:
        found = read_trend(history, TrendRequest(gate, agent, branch=branch))
    except UsageError:
        branch, found = "", read_trend(history, TrendRequest(gate, agent))
    return trend_html(found, home=home, branch=branch)


def drift(plan: Plan) -> tuple[str, ...]:
    """Return the falls that a run is the first to show. It is in the history already. No verdict depends on it."""
    try:
        history = open_history(plan.history_location)
        return new_falls(plan.run_id, read_trend(history, TrendRequest(gate=plan.gate, agent=str(plan.agent))))
    except PassgateError as error:
        warn(f"cannot look for drift: {error}. The verdict does not depend on it")
        return ()


def new_falls(run_id: str, trend: Trend) -> tuple[str, ...]:
    """Return the changes for the worse that a run is the first to show, as `passgate trend` words them."""
    changes = (change for change in trend.changes if change.is_worse and change.told_by == run_id)
    return tuple(change_text(change, lambda name: printable(name, _LONGEST_NAME)) for change in changes)


@refuse_foreign_rows()
def read_trend(history: History, request: TrendRequest, runs: RunSelection = NEWEST, suite: str | None = None) -> Trend:
    """Return the trend of some runs. Raises `UsageError` if no run is left, `StorageError`."""
    summaries = history.summaries(replace(runs, gate=request.gate), suite).to_pandas()
    if summaries.empty and request.gate is not None:
        summaries = history.summaries(runs, suite).to_pandas()  # for a message that names what there is
    if summaries.empty:
        what = "that match --since, --until and --suite" if history.run_ids() else "yet: `passgate run` makes the first"
        raise UsageError(f"the history {history.location} has no runs {what}")
    return make_trend(summaries, request)


def make_trend(summaries: pd.DataFrame, request: TrendRequest) -> Trend:
    """Return what summaries say of one gate and agent. Raises `UsageError` if no run is left, with what there is."""
    points = trend_points(_select(summaries, request))
    pairs = sorted(set(zip(summaries["gate"], summaries["agent"], strict=True)))
    if not points:
        named = {"gate": request.gate, "agent": request.agent, "model": request.model, "task": request.task}
        what = " and ".join(f"of the {what} {name}" for what, name in named.items() if name is not None)
        gates, agents = (", ".join(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
        raise UsageError(f"the history has no runs {what}; it has runs of {agents} at {gates}")
    gate, agent = points[-1].gate, points[-1].agent
    points = [point for point in points if (point.gate, point.agent) == (gate, agent)]
    rows = _select(summaries, replace(request, gate=gate, agent=agent))
    days = {run_id: start_time(run_id).date() for run_id in sorted({point.run_id for point in points})}
    commits = {point.run_id: point.git_commit for point in points}
    stamps = [RunStamp(run_id=one, day=day.isoformat(), git_commit=commits[one]) for one, day in days.items()]
    labels: dict[Period, Callable[[TrendPoint], str]] = {
        Period.RUN: lambda point: point.run_id,
        Period.DAY: lambda point: days[point.run_id].isoformat(),
        Period.WEEK: lambda point: f"{days[point.run_id]:%G-W%V}",
        Period.VERSION: lambda point: point.passgate_version,
    }
    since = max(days.values()) - _WEEK + timedelta(days=1)
    week = [point for point in points if days[point.run_id] >= since]
    costs = [point.cost for point in week if point.cost is not None]
    ends: dict[str, datetime] = {}
    for point in week:
        if point.ended_at is not None:
            ends[point.run_id] = max(point.ended_at, ends.get(point.run_id, point.ended_at))
    before = [point for point in points if since - _WEEK <= days[point.run_id] < since]
    return Trend(
        gate=gate,
        agent=agent,
        runs=len(days),
        first=stamps[0],
        last=stamps[-1],
        changes=trend_changes(rows),
        last_week=_periods(week, lambda _: "last 7 days"),
        week_before=_periods(before, lambda _: "7 days before"),
        flaky=flaky_tasks(rows),
        seconds_per_verdict=median((end - start_time(run_id)).total_seconds() for run_id, end in ends.items())
        if ends
        else None,
        cost_per_verdict=sum(costs) / len({point.run_id for point in week}) if costs else None,
        periods=_periods(points, labels[request.by]),
        points=tuple(points),
        since=since.isoformat(),
        not_shown=tuple(f"{one} of {other}" for one, other in pairs if (one, other) != (gate, agent)),
        false_alarms=FALSE_ALARMS,
    )


def trend_points(summaries: pd.DataFrame) -> list[TrendPoint]:
    """Return a point per run and suite, the oldest first, unless a run only confirmed. Confirming trials only cost."""
    groups = summaries.groupby(["run_id", "suite"], sort=True)
    figures = groups.agg(
        **{name: pd.NamedAgg(name, "first") for name in ("gate", "agent", "git_commit", "passgate_version")},
        **{name: pd.NamedAgg(name, "mean") for name in ("value", *_RATES)},
        tasks=pd.NamedAgg("task_id", "size"),
        trials_passed=pd.NamedAgg("passed", "sum"),
        trials_failed=pd.NamedAgg("failed", "sum"),
        trials_error=pd.NamedAgg("errors", "sum"),
        started_at=pd.NamedAgg("started_at", "min"),
        ended_at=pd.NamedAgg("ended_at", "max"),
    )
    # A task without a value, as one with an error, leaves its suite without one.
    figures["value"] = figures["value"].where(groups["value"].count() == figures["tasks"])
    figures["cost"] = groups["total_cost"].sum(min_count=1)
    figures["trials_measured"] = figures["trials_passed"] + figures.pop("trials_failed")
    figures[["git_commit", "passgate_version"]] = figures[["git_commit", "passgate_version"]].fillna("")
    times = defaultdict[tuple[str, str], list[float]](list)
    for run_id, suite, of_task in zip(summaries["run_id"], summaries["suite"], summaries["wall_times"], strict=True):
        times[run_id, suite] += of_task.tolist()
    points = list[TrendPoint]()
    for row in figures[figures["started_at"].notna()].reset_index().to_dict("records"):
        known: dict[str, Any] = {str(name): None if pd.isna(value) else value for name, value in row.items()}
        of_suite = times[known["run_id"], known["suite"]]
        p50, p95 = (percentile(of_suite, percent) for percent in (50, 95))
        low, high = (None, None) if known["value"] is None else suite_interval(known["value"], known["tasks"])
        points.append(TrendPoint(**known, low=low, high=high, latency_p50_seconds=p50, latency_p95_seconds=p95))
    return points


def _select(summaries: pd.DataFrame, request: TrendRequest) -> pd.DataFrame:
    wanted = {"gate": request.gate, "agent": request.agent, "task_id": request.task, "git_branch": request.branch}
    for column, value in wanted.items():
        if value is not None:
            summaries = summaries[summaries[column] == str(value)]
    if request.model is not None:
        summaries = summaries[summaries["model"].map(lambda names: request.model in single_models(names or ""))]
    return summaries


def _periods(points: Iterable[TrendPoint], label: Callable[[TrendPoint], str]) -> tuple[TrendPeriod, ...]:
    """Return the points of each suite and period together, in the order of suites and time."""
    ordered = sorted(points, key=lambda point: ([*Suite].index(point.suite), point.run_id))
    periods = list[TrendPeriod]()
    # A version may come back; its runs are then two periods.
    for (suite, name), group in groupby(ordered, lambda point: (point.suite, label(point))):
        own = list(group)
        value = known_mean([point.value for point in own])
        low, high = (None, None) if value is None else suite_interval(value, own[-1].tasks)
        periods.append(
            TrendPeriod(
                suite=suite,
                label=name,
                runs=len(own),
                tasks=own[-1].tasks,
                **{name: sum(getattr(point, name) for point in own) for name in _SUMS},
                value=value,
                low=low,
                high=high,
                **{name: known_mean([getattr(point, name) for point in own]) for name in _MEANS},
            )
        )
    return tuple(periods)
