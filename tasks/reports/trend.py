"""The trend of a gate and agent: what changed since when and by which task, then how each suite does."""

from collections.abc import Callable, Sequence
from typing import Final

from passgate.tasks.model.history import Quantity, Trend, TrendChange, TrendPeriod
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import render
from passgate.tasks.reports.document import Item, Items, Remark, Section, Span, Table, Tone, name, strong
from passgate.tasks.stats.change_points import LEAST_BEFORE

_MOST_CHANGES: Final = 5
_MOST_TASKS: Final = 3
_COMMIT: Final = 10
_RATES: Final = ("tool_call_accuracy", "loop_rate", "retry_rate", "policy_adherence", "injection_success_rate")


def trend_screen(trend: Trend, *, width: int, color: bool, periods: bool = False) -> str:
    """Return the trend on one screen: changes, suites, flaky tasks, the time of a verdict; on demand `periods`."""
    return render(*_sections(trend, periods=periods), width=width, color=color, elsewhere="with --format json")


def trend_html(trend: Trend, *, home: str = "", branch: str = "") -> str:
    """Return the screen as one self-contained page. `home` links to all runs, `branch` is the only one shown."""
    from passgate.tasks.reports.page.rendering import templates, value_lines

    title, *sections = _sections(trend, periods=True)
    template = templates().get_template("trend.html.j2")
    return template.render(
        title=title.title, sections=sections, lines=value_lines(trend.points), home=home, branch=branch
    )


def change_text(change: TrendChange, text: Callable[[str], str]) -> str:
    """Return `golden pass rate 97 % -> 81 % since 2026-11-18, by fix-tests_1`; `text` escapes names."""
    level = {
        Quantity.PASS_RATE: figures.percent,
        Quantity.LATENCY: figures.duration,
        Quantity.COST: figures.dollars,
    }[change.quantity]
    what = f"{text(change.suite)} {change.quantity} {level(change.before)} -> {level(change.after)}"
    when = f"from {change.first_after.day} to {change.until.day}" if change.until else f"since {change.first_after.day}"
    tasks = figures.listed([text(task) for task in change.tasks], _MOST_TASKS) if change.tasks else "the whole suite"
    return f"{what} {when}, by {tasks}"


def _sections(trend: Trend, *, periods: bool) -> list[Section]:
    runs = f"{figures.count(trend.runs, 'run')} from {trend.first.day} to {trend.last.day}"
    new = [change for change in trend.changes if change.first_after.day >= trend.since]
    earlier = [change for change in trend.changes if change not in new]
    nothing = "nothing"
    if trend.runs <= LEAST_BEFORE and not trend.changes:
        nothing = f"The history has too few runs: a change can be seen from the {LEAST_BEFORE + 1}th run on."
    elif not trend.changes:
        alarms = f"at most {trend.false_alarms:g} false alarms are expected in 365 runs"
        nothing = f"No change that chance does not explain ({alarms})."
    sections = [
        Section((strong(f"{trend.gate} of {trend.agent}: {runs}"),)),
        Section((f"Changed since {trend.since}",), (_changes(new) if new else Remark(nothing),)),
    ]
    if earlier:
        sections.append(Section(("Changed earlier",), (_changes(earlier),)))
    before = {period.suite: period for period in trend.week_before}
    suites = []
    for period in trend.last_week:
        _, _, *numbers, cost, fast, slow = _period_row(period)
        earlier_value = figures.percent(before[period.suite].value if period.suite in before else None)
        suites.append((period.suite, *numbers, earlier_value, cost, fast, slow))
    suites_header = ("suite", "runs", "trials", "value", "95 % interval", "before", "cost", "p50", "p95")
    rates = tuple(
        (one.suite, *(figures.percent(getattr(one, name)) for name in _RATES), str(one.trials_error))
        for one in trend.last_week
    )
    rates_header = ("suite", "tool-call accuracy", "loops", "retries", "policy adherence", "injections", "errors")
    sections += [
        Section(("Suites",), (Table(suites_header, tuple(suites)),)),
        Section((), (Table(rates_header, rates),)),
    ]
    if trend.flaky:
        flaky = tuple(
            (name(f"{task.suite}/{task.task_id}"), f"{task.passed}/{task.n}", figures.percent(task.disagreement))
            for task in trend.flaky
        )
        flaky_header = ("flaky in the last 30 runs", "trials", "two trials of a run differ")
        sections.append(Section((), (Table(flaky_header, flaky),)))
    if periods:
        periods_header = ("suite", "period", "runs", "trials", "value", "95 % interval", "cost", "p50", "p95")
        rows = tuple(map(_period_row, trend.periods))
        sections.append(Section(("Periods",), (Table(periods_header, rows, texts=2),)))
    cost = "" if trend.cost_per_verdict is None else f" and {figures.dollars(trend.cost_per_verdict)} (mean)"
    time = figures.duration(trend.seconds_per_verdict)
    sections.append(Section((), (Remark(f"A verdict took {time} (median){cost} in the last 7 days."),)))
    return sections


def _changes(changes: Sequence[TrendChange]) -> Items:
    items = []
    for change in changes:
        mark, tone = ("▼", Tone.BAD) if change.is_worse else ("▲", Tone.GOOD)
        facts = [f"run {change.first_after.run_id}"]
        first, last = (stamp.git_commit[:_COMMIT] for stamp in (change.last_before, change.first_after))
        if first and last:
            is_same = change.last_before.git_commit == change.first_after.git_commit
            facts.append(f"same commit {last}" if is_same else f"commits {first}..{last}")
        if change.also_changed:
            facts.append(f"also changed: {'; '.join(change.also_changed)}")
        text = change_text(change, str)
        words = (strong(text) if change.is_worse else Span(text), "\n", Span(", ".join(facts), tone=Tone.QUIET))
        items.append(Item(words, tone, mark=mark))
    return Items(tuple(items), most_on_screen=_MOST_CHANGES)


def _period_row(period: TrendPeriod) -> tuple[str | Span, ...]:
    interval = figures.UNKNOWN
    if period.low is not None and period.high is not None:
        interval = f"[{figures.percent(period.low)}, {figures.percent(period.high)}]"
    return (
        period.suite,
        Span(period.label),
        str(period.runs),
        f"{period.trials_passed}/{period.trials_measured}",
        figures.percent(period.value),
        interval,
        figures.dollars(period.cost),
        figures.duration(period.latency_p50_seconds),
        figures.duration(period.latency_p95_seconds),
    )
