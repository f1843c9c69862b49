"""The trend on one screen: what changed since when and by which task, then how each suite does."""

from collections.abc import Callable, Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.history import FlakyTask, Quantity, RunStamp, Trend, TrendChange, TrendPeriod
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME, Marked, columns, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable
from passgate.tasks.stats.change_series import LEAST_BEFORE

WORSE, BETTER = "▼", "▲"
PERIOD_HEADER = ("suite", "period", "runs", "trials", "value", "95 % interval", "cost", "p50", "p95")
RATE_HEADER = ("suite", "tool-call accuracy", "loops", "retries", "policy adherence", "injections", "errors")
FLAKY_HEADER = ("flaky in the last 30 runs", "trials", "two trials of a run differ")
_MOST_CHANGES = 5
_MOST_TASKS = 3
_COMMIT = 10


def trend_screen(trend: Trend, *, width: int, color: bool, periods: bool = False) -> str:
    """Return what changed, how the suites do, which tasks are flaky and what a verdict takes, on one screen.

    With `periods` it has a row per period too.
    """
    parts: list[RenderableType] = [Text(printable(headline(trend), NAME), "bold")]
    parts += [*_changes(trend), heading("Suites"), _suites(trend, width), Text(), _rates(trend, width)]
    parts += _flaky(trend, width)
    if periods:
        parts += [heading("Periods"), _table(PERIOD_HEADER, map(period_cells, trend.periods), width)]
    parts.append(Text(f"\n{per_verdict(trend)}"))
    return rendered(*parts, width=width, color=color)


def headline(trend: Trend) -> str:
    """Return `nightly of cli:agent: 60 runs from 2026-09-01 to 2026-10-30`."""
    return (
        f"{trend.gate} of {trend.agent}: {figures.count(trend.runs, 'run')} from {trend.first.day} to {trend.last.day}"
    )


def new_and_earlier(trend: Trend) -> tuple[tuple[TrendChange, ...], tuple[TrendChange, ...]]:
    """Return the changes of the last week, and those before it."""
    new = tuple(change for change in trend.changes if change.first_after.day >= trend.since)
    return new, tuple(change for change in trend.changes if change not in new)


def change_text(change: TrendChange, text: Callable[[str], str]) -> str:
    """Return `golden pass rate 97 % -> 81 % since 2026-11-18, by fix-tests_1`; `text` escapes names."""
    parts = [
        f"{text(change.suite)} {change.quantity} {_level(change, change.before)} -> {_level(change, change.after)}"
    ]
    when = f"from {change.first_after.day} to {change.until.day}" if change.until else f"since {change.first_after.day}"
    if change.tasks:
        return f"{parts[0]} {when}, by {figures.listed([text(task) for task in change.tasks], _MOST_TASKS)}"
    return f"{parts[0]} {when}, by the whole suite"


def between_text(change: TrendChange, text: Callable[[str], str]) -> str:
    """Return the run with which a change begins, the commits before it, and what else changed with it."""
    facts = [f"run {text(change.first_after.run_id)}"]
    if change.last_before.git_commit and change.first_after.git_commit:
        facts.append(_commits(change.last_before, change.first_after, text))
    if change.also_changed:
        facts.append(f"also changed: {'; '.join(text(one) for one in change.also_changed)}")
    return ", ".join(facts)


def _commits(before: RunStamp, after: RunStamp, text: Callable[[str], str]) -> str:
    first, last = (text(stamp.git_commit[:_COMMIT]) for stamp in (before, after))
    return f"same commit {last}" if before.git_commit == after.git_commit else f"commits {first}..{last}"


def no_changes_text(trend: Trend) -> str:
    """Return what it means that there are no changes."""
    if trend.runs <= LEAST_BEFORE:
        return f"The history has too few runs: a change can be seen from the {LEAST_BEFORE + 1}th run on."
    yearly = f"{trend.false_alarms:g}"
    return f"No change that chance does not explain (at most {yearly} false alarms are expected in 365 runs)."


def period_cells(period: TrendPeriod) -> tuple[str, ...]:
    """Return a row under `PERIOD_HEADER`."""
    interval = figures.UNKNOWN
    if period.low is not None and period.high is not None:
        interval = f"[{figures.percent(period.low)}, {figures.percent(period.high)}]"
    return (
        period.suite,
        period.label,
        str(period.runs),
        f"{period.trials_passed}/{period.trials_measured}",
        figures.percent(period.value),
        interval,
        figures.dollars(period.cost),
        figures.duration(period.latency_p50_seconds),
        figures.duration(period.latency_p95_seconds),
    )


def rate_cells(period: TrendPeriod) -> tuple[str, ...]:
    """Return a row under `RATE_HEADER`."""
    rates = (
        *(period.tool_call_accuracy, period.loop_rate, period.retry_rate),
        *(period.policy_adherence, period.injection_success_rate),
    )
    return (period.suite, *map(figures.percent, rates), str(period.trials_error))


def flaky_cells(task: FlakyTask) -> tuple[str, ...]:
    """Return a row under `FLAKY_HEADER`."""
    return (f"{task.suite}/{task.task_id}", f"{task.passed}/{task.n}", figures.percent(task.disagreement))


def per_verdict(trend: Trend) -> str:
    """Return what a verdict took in the last 7 days."""
    time, cost = figures.duration(trend.seconds_per_verdict), ""
    if trend.cost_per_verdict is not None:
        cost = f" and {figures.dollars(trend.cost_per_verdict)} (mean)"
    return f"A verdict took {time} (median){cost} in the last 7 days."


def _level(change: TrendChange, level: float) -> str:
    match change.quantity:
        case Quantity.PASS_RATE:
            return figures.percent(level)
        case Quantity.LATENCY:
            return figures.duration(level)
        case Quantity.COST:
            return figures.dollars(level)


def _changes(trend: Trend) -> list[RenderableType]:
    new, earlier = new_and_earlier(trend)
    parts: list[RenderableType] = [heading(f"Changed since {trend.since}")]
    parts += _listed(new) if new else [Text("nothing" if earlier else no_changes_text(trend))]
    if earlier:
        parts += [heading("Changed earlier"), *_listed(earlier)]
    return parts


def _listed(changes: Sequence[TrendChange]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for change in changes[:_MOST_CHANGES]:
        mark, style = (WORSE, "bold red") if change.is_worse else (BETTER, "green")
        text = Text(change_text(change, _text), "bold" if change.is_worse else "")
        text.append(f"\n{between_text(change, _text)}", "dim not bold")
        parts.append(Marked(mark, text, style=style))
    if len(changes) > _MOST_CHANGES:
        parts.append(Text(f"and {len(changes) - _MOST_CHANGES} more: --format json has all", "dim"))
    return parts


def _suites(trend: Trend, width: int) -> Table:
    before = {period.suite: period for period in trend.week_before}
    header = ("suite", "runs", "trials", "value", "95 % interval", "before", "cost", "p50", "p95")
    return _table(header, (_suite_row(period, before.get(period.suite)) for period in trend.last_week), width)


def _suite_row(period: TrendPeriod, before: TrendPeriod | None) -> tuple[str, ...]:
    suite, _, *rest = period_cells(period)
    return (suite, *rest[:4], figures.percent(before.value if before else None), *rest[4:])


def _rates(trend: Trend, width: int) -> Table:
    return _table(RATE_HEADER, map(rate_cells, trend.last_week), width)


def _flaky(trend: Trend, width: int) -> list[RenderableType]:
    return [Text(), _table(FLAKY_HEADER, map(flaky_cells, trend.flaky), width)] if trend.flaky else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> Table:
    heads = [*columns(header[0]), *columns(*header[1:], justify="right")]
    return plain_table(width, heads, ([Text(printable(cell, NAME)) for cell in row] for row in rows))


def _text(name: str) -> str:
    return printable(name, NAME)
