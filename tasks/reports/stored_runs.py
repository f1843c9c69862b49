"""The stored runs of a history, and two of them side by side."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from passgate.tasks.model.history import (
    PrunedRuns,
    RecordedRun,
    RecordedRunDetails,
    RecordedTask,
    TaskDifference,
)
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import render
from passgate.tasks.reports.document import Section, Span, Table, name, strong
from passgate.tasks.reports.escape import printable

_LEAST = 0.0005
_COLUMNS: Final = ("run", "verdict", "agent", "branch", "commit", "reason", "tasks", "trials", "cost")
_TEXTS: Final = _COLUMNS[:6]
_GONE: Final = ("", "tasks", "commit", "reason", "branch", "agent")
"""The columns that are left out, one after the other, until the others have room."""
_NAME: Final = 200
_SHORT: Final = 20  # The most characters of an agent or a branch if there is little room


def stored_runs_table(runs: Sequence[RecordedRun], *, width: int, color: bool) -> str:
    """Return a line per run, the newest last. If the columns need more room than there is, some are left out."""
    if not runs:
        return "No runs.\n"
    is_judged = any(run.decision for run in runs)
    names = [column for column in _COLUMNS if is_judged or column not in {"verdict", "reason"}]
    rows, gap = [_run_cells(run, _NAME) for run in runs], 1 if width < 100 else 2
    for gone in _GONE:
        names = [column for column in names if column != gone]
        widths = [max(cell_len(text) for text in (column, *(row[column] for row in rows))) for column in names]
        if sum(widths) + gap * (len(names) - 1) <= width:
            break
        rows = [_run_cells(run, _SHORT) for run in runs]
    texts = sum(column in _TEXTS for column in names)
    table = Table(tuple(names), tuple(tuple(row[column] for column in names) for row in rows), texts)
    return render(Section((), (table,)), width=width, color=color)


def _run_cells(run: RecordedRun, most: int) -> dict[str, str]:
    return {
        "run": printable(run.run_id, _NAME),
        "verdict": run.decision or figures.UNKNOWN,
        "agent": printable(run.agent, most),
        "branch": printable(run.git_branch, most),
        "commit": printable(run.git_commit[:10], _NAME),
        "reason": printable(run.reason, most * 2),
        "tasks": str(run.tasks),
        "trials": figures.trials(run.passed, run.measured, run.errors, 0),
        "cost": figures.dollars(run.cost),
    }


def run_summary(details: RecordedRunDetails, *, width: int, color: bool) -> str:
    """Return the run, and a row per task."""
    run = details.run
    commit = f"{run.git_commit[:10]}{' with uncommitted changes' if details.git_dirty else ''}"
    facts = {
        "gate": str(run.gate),
        "verdict": " · ".join(filter(None, (run.decision, run.reason))),
        "agent": run.agent,
        "models": ", ".join(details.models),
        "branch": run.git_branch,
        "commit": commit,
        "passgate": details.passgate_version,
        "trials": figures.trials(run.passed, run.measured, run.errors, 0),
        "cost": figures.dollars(run.cost),
    }
    head = Table(("", ""), tuple((label, Span(text)) for label, text in facts.items() if text), texts=2)
    header = ("task", "metric", "value", "trials", "violations", "seconds", "cost")
    tasks = Table(header, tuple(map(_task_cells, details.tasks)), texts=2)
    sections = (Section((strong(run.run_id),), (head,)), Section((), (tasks,)))
    return render(*sections, width=width, color=color)


def _task_cells(task: RecordedTask) -> tuple[str | Span, ...]:
    confirming = task.confirming_passed + task.confirming_failed
    trials = figures.trials(task.passed, task.passed + task.failed, task.errors, task.not_run)
    return (
        name(f"{task.suite}/{task.task_id}"),
        figures.metric_name(task.metric, task.k),
        figures.percent(task.value),
        trials + (f" +{task.confirming_passed}/{confirming} confirming" if confirming else ""),
        str(task.violations or figures.UNKNOWN),
        figures.UNKNOWN if task.wall_time_seconds is None else f"{task.wall_time_seconds:.1f}",
        figures.dollars(task.total_cost),
    )


def pruned_text(pruned: PrunedRuns, *, done: bool, width: int, color: bool) -> str:
    """Return the runs that go, and how many stay and why."""
    head = "Nothing to remove.\n"
    if pruned.gone:
        verb = ("is" if len(pruned.gone) == 1 else "are") if done else "would be"
        table = stored_runs_table(pruned.gone, width=width, color=color)
        head = f"{table}{figures.count(len(pruned.gone), 'run')} {verb} removed.\n"
    kept = [
        f"{figures.count(len(runs), 'run')} {'stays' if len(runs) == 1 else 'stay'}: {why}\n"
        for runs, why in ((pruned.pinned, "pinned in baseline.yaml"), (pruned.needed, "needed by a baseline"))
        if runs
    ]
    return f"{head}{''.join(kept)}{figures.count(pruned.left, 'run')} left.\n"


def differences_table(
    before: RecordedRun, after: RecordedRun, differences: Sequence[TaskDifference], *, width: int, color: bool
) -> str:
    """Return the two runs, and a row per task that differs."""
    different = [one for one in differences if abs(one.change) > _LEAST or one.before is None or one.after is None]
    title = f"{before.run_id} -> {after.run_id}: {figures.count(len(different), 'task')} of {len(differences)} differ"
    rows = list[tuple[str | Span, ...]]()
    for one in different:
        shares = (figures.UNKNOWN if trials is None else "{}/{}".format(*trials) for trials in (one.before, one.after))
        change = "new" if one.before is None else "gone" if one.after is None else f"{one.change * 100:+.0f} points"
        rows.append((name(f"{one.suite}/{one.task_id}"), *shares, change))
    table = Table(("task", "before", "after", "change"), tuple(rows))
    return render(Section((strong(title),), (table,) if rows else ()), width=width, color=color)
