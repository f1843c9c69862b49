"""How the suites did from day to day, and which runs lie below the others."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date
from itertools import groupby
from statistics import fmean, median

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import Suite
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import columns, fitting_table, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

MARK = "▼"
DROP = 0.10  # A run whose value is this far below the median of the others is called worse, whatever its interval

RULE = (
    f"{MARK} worse: the upper end of the run's 95 % interval lies below the mean of the suite's other runs "
    f"(weighted by tasks), or its value lies more than {DROP * 100:.0f} points below their median."
)


def trend_table(points: Sequence[TrendPoint], *, width: int, color: bool) -> str:
    """A table per suite with a row per day (UTC), the oldest first, and the rule for the mark under it."""
    if not points:
        return "No runs.\n"
    parts: list[RenderableType] = []
    for suite, of_suite in by_suite(points):
        parts += [heading(suite), _suite_table(of_suite, width)]
    return rendered(*parts, Text(f"\n{RULE}", "dim"), width=width, color=color).removeprefix("\n")


def by_suite(points: Iterable[TrendPoint]) -> Iterator[tuple[Suite, tuple[TrendPoint, ...]]]:
    """The suites that have points, in their usual order, each with its points from the oldest on."""
    ordered = sorted(points, key=lambda point: (list(Suite).index(point.suite), point.started_at, point.run_id))
    for suite, of_suite in groupby(ordered, key=lambda point: point.suite):
        yield suite, tuple(of_suite)


def worse_runs(points: Sequence[TrendPoint]) -> frozenset[str]:
    """The ids of those runs of one suite that lie below the other runs, as `RULE` says.

    A run without a value is neither worse nor one of the others.
    """
    valued = [(point, point.value) for point in points if point.value is not None]
    worse = set()
    for position, (point, value) in enumerate(valued):
        others = valued[:position] + valued[position + 1 :]
        if not others:
            continue
        values = [other for _, other in others]
        mean = fmean(values, weights=[max(1, other.tasks) for other, _ in others])
        # Values are fractions of whole numbers: without the margin 0.8 - 0.7 is more than 0.1.
        if (point.high is not None and point.high < mean - 1e-9) or median(values) - value > DROP + 1e-9:
            worse.add(point.run_id)
    return frozenset(worse)


def _suite_table(points: Sequence[TrendPoint], width: int) -> Table:
    worse = worse_runs(points)
    # In UTC, so that readers in different time zones see the same days.
    days = [(day, tuple(of_day)) for day, of_day in groupby(points, lambda one: one.started_at.astimezone(UTC).date())]
    header = (
        *columns("day", no_wrap=True),
        *columns("runs", "tasks", "trials", "value", "worst", justify="right", no_wrap=True),
        *columns("worst run"),
    )

    def table(before_mark: str) -> Table:
        return plain_table(width, header, (_day_row(*day, worse, before_mark) for day in days))

    return fitting_table(table, width, " ", "\n")


def _day_row(day: date, points: Sequence[TrendPoint], worse: frozenset[str], before_mark: str) -> tuple[Text, ...]:
    tasks = [point.tasks for point in points]
    values = [point.value for point in points if point.value is not None]
    # A run that is worse than the others is named before one of a lower value that is not.
    worst = min(
        (point for point in points if point.value is not None),
        key=lambda point: (point.run_id not in worse, point.value),
        default=None,
    )
    is_worse = worst is not None and worst.run_id in worse
    style = "bold red" if is_worse else ""
    run = printable(worst.run_id, 80) if worst else figures.UNKNOWN
    trials = Text(f"{sum(point.trials_passed for point in points)}/{sum(point.trials_measured for point in points)}")
    if errors := sum(point.trials_error for point in points):
        trials.append(f"\n+{figures.count(errors, 'error')}", "yellow")
    return (
        Text(day.isoformat()),
        Text(str(len(points))),
        Text("-".join(str(end) for end in sorted({min(tasks), max(tasks)}))),
        trials,
        Text(figures.percent(fmean(values) if values else None), "bold"),
        Text(figures.percent(worst.value if worst else None), style),
        Text(f"{run}{before_mark}{MARK} worse" if is_worse else run, style),
    )
