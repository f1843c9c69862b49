"""What a run is compared with, task by task."""

from collections import Counter, defaultdict

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
from passgate.tasks.reports.console import render
from passgate.tasks.reports.document import Remark, Section, Span, Table, Tone, name, strong
from passgate.tasks.reports.escape import printable
from passgate.tasks.stats.estimators import wilson_interval

_STATES = {
    BaselineState.NEW: Span(BaselineState.NEW, tone=Tone.QUIET),
    BaselineState.NONE: Span(BaselineState.NONE, tone=Tone.QUIET),
    BaselineState.GREEN: Span(BaselineState.GREEN, tone=Tone.GOOD),
    BaselineState.RED: strong(BaselineState.RED, Tone.BAD),
    BaselineState.UNRELIABLE: Span(BaselineState.UNRELIABLE, tone=Tone.OPEN),
}
_LONGEST_LINE = 2000
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
    if plan.pins is not None and plan.pins.runs:
        source = "pinned runs"
    elif not baseline.commit:
        source = f"the branch {baseline.branch} by its name, because there is no merge base"
    else:
        what = "pinned commit" if baseline.pinned else f"merge base with {baseline.branch}"
        source = f"{what} {baseline.commit[:_SHORT_COMMIT]} and its first-parent ancestors"
    facts = {
        "baseline": f"{source}: {figures.count(len(baseline.runs), 'run')}",
        "pinned": pin_text(plan.pins) if plan.pins is not None else "",
        "agent": str(plan.agent),
        "note": plan.base.note,
    }
    sections = [Section((), (Table(("", ""), tuple((label, Span(fact)) for label, fact in facts.items() if fact), 2),))]
    by_suite: dict[str, list[tuple[str | Span, ...]]] = defaultdict(list)
    for task in sorted(baseline.tasks):
        suite, _, task_id = task.partition("/")
        by_suite[suite].append(_row(task_id, baseline.tasks[task]))
    header = ("task", "state", "newest run", "runs", "trials", "pass rate")
    sections += [
        Section((suite,), (Table(header, tuple(by_suite[suite]), texts=3),)) for suite in Suite if suite in by_suite
    ]
    counts = Counter(entry.state for entry in baseline.tasks.values())
    states = ", ".join(f"{counts[state]} {state}" for state in BaselineState if counts[state])
    summary = f"{figures.count(len(baseline.tasks), 'task')}{': ' if states else ''}{states}"
    rule = RULE + (f" {EDITED}" if any(entry.before_edit for entry in baseline.tasks.values()) else "")
    return render(*sections, Section((strong(summary),), (Remark(rule),)), width=width, color=color)


def _row(task_id: str, entry: BaselineTask) -> tuple[str | Span, ...]:
    state = _STATES[entry.state]
    rate = trials = runs = newest = figures.UNKNOWN
    if entry.n:
        low, high = wilson_interval(entry.n, entry.passed)
        trials = f"{entry.passed}/{entry.n}"
        rate = f"{figures.percent(entry.passed / entry.n)} {figures.interval(Interval(low=low, high=high))}"
    if entry.runs:
        runs, newest = f"{entry.runs_green}/{len(entry.runs)}", entry.runs[0]
    edited = state._replace(text=f"{entry.state}, edited") if entry.before_edit else state
    return name(task_id), edited, name(newest), runs, trials, rate


def baseline_document(plan: Plan, baseline: Baseline) -> dict[str, object]:
    """Return the baseline with every field, what is pinned, and why there is no merge base if there is none."""
    return {"agent": str(plan.agent), **dict(baseline), "pins": plan.pins, "note": plan.base.note}


def pin_text(pins: Pins) -> str:
    """Return what is pinned, by whom and why, in a line."""
    runs = f"{figures.count(len(pins.runs), 'run')} ({figures.listed(pins.runs, 3)})"
    what = f"commit {pins.commit[:_SHORT_COMMIT]}" if pins.commit else runs
    return printable(f"{what}, by {pins.by}: {pins.reason}", _LONGEST_LINE)
