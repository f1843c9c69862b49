"""What a run is compared with, task by task."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.baseline import (
    GREEN_SHARE,
    RED_IN_A_ROW,
    RED_SHARE,
    Baseline,
    BaselineState,
    BaselineTask,
    Pins,
)
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Suite
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import columns, fitting_table, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable
from passgate.tasks.stats.estimators import wilson_interval

_STYLES = {
    BaselineState.NEW: "dim",
    BaselineState.NONE: "dim",
    BaselineState.GREEN: "green",
    BaselineState.RED: "bold red",
    BaselineState.UNRELIABLE: "yellow",
}
_LONGEST_NAME, _LONGEST_LINE = 200, 2000
_SHORT_COMMIT = 12

RULE = (
    f"{BaselineState.GREEN}: at least {GREEN_SHARE} of the runs passed the task; {BaselineState.RED}: at most "
    f"{RED_SHARE}, or the newest {RED_IN_A_ROW} all failed it; {BaselineState.UNRELIABLE}: between. "
    f"{BaselineState.NONE}: no run decided it with its digests, k and agent of today; {BaselineState.NEW}: no run "
    "knows it."
)


def baseline_table(plan: Plan, baseline: Baseline, *, width: int, color: bool) -> str:
    """What the baseline is, a table per suite with a row per task, how many tasks stand how, and the rule for it."""
    facts = "\n".join(f"{name.ljust(8)}  {printable(fact, _LONGEST_LINE)}" for name, fact in _facts(plan, baseline))
    parts: list[RenderableType] = [Text(facts)]
    for suite, entries in _by_suite(baseline):
        parts += [heading(printable(suite, _LONGEST_NAME)), _suite_table(entries, width)]
    parts += [heading(_summary(baseline)), Text(RULE, "dim")]
    return rendered(*parts, width=width, color=color)


def baseline_as_json(plan: Plan, baseline: Baseline) -> str:
    """The baseline with every field, what is pinned, and why the merge base cannot be told where it cannot."""
    fields = {
        "agent": str(plan.agent),
        **baseline.model_dump(mode="json"),
        "pins": plan.pins and plan.pins.model_dump(mode="json"),
        "note": plan.base.note,
    }
    return json.dumps(fields, indent=2)


def pin_text(pins: Pins) -> str:
    """What is pinned, by whom and why, in a line."""
    what = f"commit {pins.commit[:_SHORT_COMMIT]}" if pins.commit else _runs(pins.runs)
    return printable(f"{what}, by {pins.by}: {pins.reason}", _LONGEST_LINE)


def _runs(runs: tuple[str, ...]) -> str:
    shown = ", ".join(runs[:3]) + (", ..." if len(runs) > 3 else "")
    return f"{figures.count(len(runs), 'run')} ({shown})"


def _facts(plan: Plan, baseline: Baseline) -> Iterator[tuple[str, str]]:
    yield "baseline", f"{_source(plan, baseline)}: {figures.count(len(baseline.runs), 'run')}"
    if plan.pins is not None:
        yield "pinned", pin_text(plan.pins)
    yield "agent", str(plan.agent)
    if plan.base.note:
        yield "note", plan.base.note


def _source(plan: Plan, baseline: Baseline) -> str:
    """Which runs they are."""
    if plan.pins is not None and plan.pins.runs:
        return "pinned runs"
    if not baseline.commit:
        return f"the branch {baseline.branch} by its name, for there is no merge base"
    what = "pinned commit" if baseline.pinned else f"merge base with {baseline.branch}"
    return f"{what} {baseline.commit[:_SHORT_COMMIT]} and its first-parent ancestors"


def _by_suite(baseline: Baseline) -> Iterator[tuple[str, Mapping[str, BaselineTask]]]:
    """The suites in their usual order, each with its tasks by their task_id."""
    order = list(map(str, Suite))
    by_suite: dict[str, dict[str, BaselineTask]] = defaultdict(dict)
    for name in sorted(baseline.tasks):
        suite, _, task_id = name.partition("/")
        by_suite[suite][task_id] = baseline.tasks[name]
    yield from sorted(by_suite.items(), key=lambda one: order.index(one[0]))


def _suite_table(entries: Mapping[str, BaselineTask], width: int) -> Table:
    header = (
        *columns("task"),
        *columns("state", no_wrap=True),
        *columns("runs", "trials", justify="right", no_wrap=True),
        *columns("pass rate", no_wrap=True),
        *columns("newest run"),
    )

    def table(before_interval: str) -> Table:
        return plain_table(width, header, (_row(*entry, before_interval) for entry in entries.items()))

    return fitting_table(table, width, " ", "\n")


def _row(task_id: str, entry: BaselineTask, before_interval: str) -> tuple[Text, ...]:
    return (
        Text(printable(task_id, _LONGEST_NAME)),
        Text(entry.state, _STYLES[entry.state]),
        Text(f"{entry.runs_green}/{len(entry.runs)}" if entry.runs else figures.UNKNOWN),
        Text(figures.trials(entry.passed, entry.n, 0) if entry.n else figures.UNKNOWN),
        Text(_rate(entry, before_interval)),
        Text(printable(entry.runs[0], _LONGEST_NAME) if entry.runs else figures.UNKNOWN),
    )


def _rate(entry: BaselineTask, before_interval: str) -> str:
    """The share of trials that passed with its 95 % interval (Wilson)."""
    if not entry.n:
        return figures.UNKNOWN
    low, high = wilson_interval(entry.n, entry.passed)
    return f"{figures.percent(entry.passed / entry.n)}{before_interval}{figures.interval(Interval(low=low, high=high))}"


def _summary(baseline: Baseline) -> str:
    """`12 tasks: 10 green, 2 new task`."""
    counts = Counter(entry.state for entry in baseline.tasks.values())
    parts = [f"{counts[state]} {state}" for state in BaselineState if counts[state]]
    return f"{figures.count(len(baseline.tasks), 'task')}{': ' if parts else ''}{', '.join(parts)}"
