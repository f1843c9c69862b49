"""The stored runs of a history, and two of them side by side."""

from collections.abc import Sequence

from rich.text import Text

from passgate.tasks.model.recorded_run import RecordedRun, TaskDifference
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
