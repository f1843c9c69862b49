"""What a run is compared with, task by task."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping

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
    f"{RED_SHARE}, or the newest {RED_IN_A_ROW} all failed it; {BaselineState.UNRELIABLE}: in between. "
    f"{BaselineState.NONE}: no run decided the task with today's digests, k and agent; {BaselineState.NEW}: no run "
    "has the task."
)
EDITED = "edited: its own trials are too few, so those of its version before the edit count too."


def baseline_table(plan: Plan, baseline: Baseline, *, width: int, color: bool) -> str:
    """Return what the baseline is, a table of tasks per suite, the number of tasks in each state, and the rule."""
    facts = {"baseline": f"{_source(plan, baseline)}: {figures.count(len(baseline.runs), 'run')}"}
    if plan.pins is not None:
        facts["pinned"] = pin_text(plan.pins)
    facts["agent"] = str(plan.agent)
    if plan.base.note:
        facts["note"] = plan.base.note
    lines = (f"{name.ljust(8)}  {printable(fact, _LONGEST_LINE)}" for name, fact in facts.items())
    parts: list[RenderableType] = [Text("\n".join(lines))]
    by_suite: dict[str, dict[str, BaselineTask]] = defaultdict(dict)
    for name in sorted(baseline.tasks):
        suite, _, task_id = name.partition("/")
        by_suite[suite][task_id] = baseline.tasks[name]
    for suite in sorted(by_suite, key=list(map(str, Suite)).index):
        parts += [heading(printable(suite, _LONGEST_NAME)), _suite_table(by_suite[suite], width)]
    counts = Counter(entry.state for entry in baseline.tasks.values())
    states = ", ".join(f"{counts[state]} {state}" for state in BaselineState if counts[state])
    summary = f"{figures.count(len(baseline.tasks), 'task')}{': ' if states else ''}{states}"
    rule = RULE + (f" {EDITED}" if any(entry.before_edit for entry in baseline.tasks.values()) else "")
    return rendered(*parts, heading(summary), Text(rule, "dim"), width=width, color=color)


def baseline_as_json(plan: Plan, baseline: Baseline) -> str:
    """Return the baseline with every field, what is pinned, and why there is no merge base if there is none."""
    fields = {
        "agent": str(plan.agent),
        **baseline.model_dump(mode="json"),
        "pins": plan.pins and plan.pins.model_dump(mode="json"),
        "note": plan.base.note,
    }
    return json.dumps(fields, indent=2)


def pin_text(pins: Pins) -> str:
    """Return what is pinned, by whom and why, in a line."""
    runs = f"{figures.count(len(pins.runs), 'run')} ({figures.listed(pins.runs, 3)})"
    what = f"commit {pins.commit[:_SHORT_COMMIT]}" if pins.commit else runs
    return printable(f"{what}, by {pins.by}: {pins.reason}", _LONGEST_LINE)


def _source(plan: Plan, baseline: Baseline) -> str:
    if plan.pins is not None and plan.pins.runs:
        return "pinned runs"
    if not baseline.commit:
        return f"the branch {baseline.branch} by its name, because there is no merge base"
    what = "pinned commit" if baseline.pinned else f"merge base with {baseline.branch}"
    return f"{what} {baseline.commit[:_SHORT_COMMIT]} and its first-parent ancestors"


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
    rate = trials = figures.UNKNOWN
    if entry.n:
        low, high = wilson_interval(entry.n, entry.passed)
        interval = figures.interval(Interval(low=low, high=high))
        trials = f"{entry.passed}/{entry.n}"
        rate = f"{figures.percent(entry.passed / entry.n)}{before_interval}{interval}"
    return (
        Text(printable(task_id, _LONGEST_NAME)),
        Text(f"{entry.state}, edited" if entry.before_edit else entry.state, _STYLES[entry.state]),
        Text(f"{entry.runs_green}/{len(entry.runs)}" if entry.runs else figures.UNKNOWN),
        Text(trials),
        Text(rate),
        Text(printable(entry.runs[0], _LONGEST_NAME) if entry.runs else figures.UNKNOWN),
    )
