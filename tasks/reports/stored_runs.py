"""The stored runs of a history, and two of them side by side."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from rich.console import JustifyMethod
from rich.table import Column, Table
from rich.text import Text

from passgate.tasks.model.history import (
    PrunedRuns,
    RecordedRun,
    RecordedRunDetails,
    RecordedTask,
    TaskDifference,
)
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME, columns, first_fitting, plain_table, rendered
from passgate.tasks.reports.escape import printable

_LEAST = 0.0005
_COLUMNS: Final = ("run", "verdict", "agent", "branch", "commit", "tasks", "trials", "cost", "reason")
_NUMBERS: Final = ("tasks", "trials", "cost")
_GONE: Final = tuple(("tasks", "commit", "reason", "branch", "agent")[:number] for number in range(6))
"""The columns that are left out if there is little room; more of them if there is less."""
_SHORT: Final = 20
"""The most characters of an agent or a branch if there is little room."""


def stored_runs_table(runs: Sequence[RecordedRun], *, width: int, color: bool) -> str:
    """Return a line per run, the newest last. If the columns need more room than there is, some are left out."""
    if not runs:
        return "No runs.\n"
    unknown = () if any(run.decision for run in runs) else ("verdict", "reason")
    known = [name for name in _COLUMNS if name not in unknown]
    wide = _runs_table(runs, width, known, NAME)
    narrower = (_runs_table(runs, width, [name for name in known if name not in gone], _SHORT) for gone in _GONE)
    return rendered(first_fitting(width, chain([wide], narrower)), width=width, color=color)


def _runs_table(runs: Sequence[RecordedRun], width: int, names: Sequence[str], most: int) -> Table:
    """Return the table with these columns, and at most `most` characters of agents and branches."""
    heads = list[Column]()
    for name in names:
        justify: JustifyMethod = "right" if name in _NUMBERS else "left"
        heads += columns(name, justify=justify, no_wrap=name not in {"agent", "branch"})
    cells = [_run_cells(run, most) for run in runs]
    # A run is one line, also for programs that take the list apart by lines.
    rows = ([Text(run[name], no_wrap=True, overflow="ellipsis") for name in names] for run in cells)
    return plain_table(width, heads, rows)


def _run_cells(run: RecordedRun, most: int) -> Mapping[str, str]:
    return {
        "run": printable(run.run_id, NAME),
        "verdict": run.decision or "-",
        "agent": printable(run.agent, most),
        "branch": printable(run.git_branch, most),
        "commit": printable(run.git_commit[:10], NAME),
        "tasks": str(run.tasks),
        "trials": figures.trials(run.passed, run.measured, run.errors, 0),
        "cost": figures.dollars(run.cost),
        "reason": printable(run.reason, most * 2),
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
    head = "\n".join(f"{name:9} {printable(text, NAME)}" for name, text in facts.items() if text)
    heads = [
        *columns("task", "trials", "metric"),
        *columns("value", "violations", "seconds", "cost", justify="right"),
    ]
    table = plain_table(width, heads, (map(Text, _task_cells(task)) for task in details.tasks))
    return rendered(Text(printable(run.run_id, NAME), "bold"), Text(head), Text(), table, width=width, color=color)


def _task_cells(task: RecordedTask) -> tuple[str, ...]:
    confirming = task.confirming_passed + task.confirming_failed
    trials = figures.trials(task.passed, task.passed + task.failed, task.errors, task.not_run)
    return (
        f"{task.suite}/{printable(task.task_id, NAME)}",
        trials + (f", confirming {task.confirming_passed}/{confirming}" if confirming else ""),
        figures.metric_name(task.metric, task.k),
        figures.percent(task.value),
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
    rows = (
        (f"{one.suite}/{printable(one.task_id, NAME)}", _share(one.before), _share(one.after), _change(one))
        for one in different
    )
    heads = [*columns("task"), *columns("before", "after", "change", justify="right")]
    tables = [plain_table(width, heads, (map(Text, row) for row in rows))] if different else []
    return rendered(Text(printable(title, NAME), "bold"), *tables, width=width, color=color)


def _share(trials: tuple[int, int] | None) -> str:
    return figures.UNKNOWN if trials is None else f"{trials[0]}/{trials[1]}"


def _change(one: TaskDifference) -> str:
    if one.before is None or one.after is None:
        return "new" if one.before is None else "gone"
    return f"{one.change * 100:+.0f} points"
