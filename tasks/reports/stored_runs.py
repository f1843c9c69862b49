"""The stored runs of a history, and two of them side by side."""

from collections.abc import Sequence

from rich.text import Text

from passgate.tasks.model.recorded_run import (
    PrunedRuns,
    RecordedRun,
    RecordedRunDetails,
    RecordedTask,
    TaskDifference,
)
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME, columns, plain_table, rendered
from passgate.tasks.reports.escape import printable

_LEAST = 0.0005


def stored_runs_table(runs: Sequence[RecordedRun], *, width: int, color: bool) -> str:
    """A row per run, the newest last."""
    if not runs:
        return "No runs.\n"
    heads = [
        *columns("run", no_wrap=True),
        *columns("agent", "branch", "commit"),
        *columns("tasks", "trials", "cost", justify="right"),
    ]
    rows = [
        (
            *(printable(text, NAME) for text in (run.run_id, run.agent, run.git_branch, run.git_commit[:10])),
            str(run.tasks),
            figures.trials(run.passed, run.measured, run.errors, 0),
            figures.dollars(run.cost),
        )
        for run in runs
    ]
    return rendered(plain_table(width, heads, (map(Text, row) for row in rows)), width=width, color=color)


def run_summary(details: RecordedRunDetails, *, width: int, color: bool) -> str:
    """The run, and a row per task."""
    run = details.run
    commit = f"{run.git_commit[:10]}{' with uncommitted changes' if details.git_dirty else ''}"
    facts = {
        "gate": str(run.gate),
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
    """The runs that go, and how many stay and why."""
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
    """The two runs, and a row per task that differs."""
    told = [one for one in differences if abs(one.change) > _LEAST or one.before is None or one.after is None]
    title = f"{before.run_id} -> {after.run_id}: {figures.count(len(told), 'task')} of {len(differences)} differ"
    rows = (
        (f"{one.suite}/{printable(one.task_id, NAME)}", _share(one.before), _share(one.after), _change(one))
        for one in told
    )
    heads = [*columns("task"), *columns("before", "after", "change", justify="right")]
    table = plain_table(width, heads, (map(Text, row) for row in rows))
    return rendered(Text(printable(title, NAME), "bold"), table, width=width, color=color)


def _share(trials: tuple[int, int] | None) -> str:
    return figures.UNKNOWN if trials is None else f"{trials[0]}/{trials[1]}"


def _change(one: TaskDifference) -> str:
    if one.before is None or one.after is None:
        return "new" if one.before is None else "gone"
    return f"{one.change * 100:+.0f} points"
