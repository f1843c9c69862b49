"""`passgate history`: the stored runs of a history."""

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_runs

if TYPE_CHECKING:
    from passgate.tasks.history.dataset import History
    from passgate.tasks.model.history import PrunedRuns

history = typer.Typer(help="Look after the history of all runs.", no_args_is_help=True)


class ShownFormat(StrEnum):
    """The formats of a run's summary."""

    TABLE = "table"
    JSON = "json"


RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run: its id, how its id begins, or `last`.", autocompletion=complete_runs),
]


@history.command("list")
def list_(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    since: options.SinceOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """List the stored runs with their verdicts, the newest last."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.commands.history import add_verdict, stored_runs
    from passgate.tasks.history.dataset import RunSelection
    from passgate.tasks.reports.stored_runs import stored_runs_table

    summaries = _open(gates, history).summaries(RunSelection(since or ""))
    runs = tuple(map(add_verdict, stored_runs(summaries)))
    answer(lambda: stored_runs_table(runs, width=width(), color=color()), lambda: runs, as_json=as_json, quiet=quiet)
    return 0


@history.command()
def compare(
    run: RunArgument,
    with_run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="The other run. Default: the one before it, of the same gate and agent."),
    ] = None,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Compare a run with another one, task by task."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.commands.history import compare_runs
    from passgate.tasks.reports.stored_runs import differences_table

    before, after, differences = compare_runs(_open(gates, history), run, with_run)
    answer(
        lambda: differences_table(before, after, differences, width=width(), color=color()),
        lambda: {"before": before, "after": after, "tasks": differences},
        as_json=as_json,
        quiet=quiet,
    )
    return 0


@history.command()
def show(
    run: RunArgument,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    output_format: Annotated[ShownFormat, typer.Option("--format", help="The format.")] = ShownFormat.TABLE,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Show what the history says of a run, task by task."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.commands.history import run_details
    from passgate.tasks.reports.stored_runs import run_summary

    details = run_details(_open(gates, history), run)
    as_json = as_json or output_format is ShownFormat.JSON
    answer(lambda: run_summary(details, width=width(), color=color()), lambda: details, as_json=as_json, quiet=quiet)
    return 0


@history.command()
def prune(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="DAY", parser=options.named_day, help="Remove runs that began before this UTC day."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Remove all but the newest N runs of each gate and agent.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Remove old runs from the history. Runs that are pinned or that a baseline needs stay."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.history import stored_runs
    from passgate.tasks.commands.prune import needs_of, pruned_runs, runs_before, runs_beyond
    from passgate.tasks.errors import UsageError
    from passgate.tasks.history.dataset import EVERY_RUN
    from passgate.tasks.reports import figures
    from passgate.tasks.reports.stored_runs import pruned_text

    if (before is None) is (keep is None):
        raise UsageError("give --before or --keep to say what is to go, not both")
    if (as_json or quiet) and not (dry_run or yes):
        raise UsageError("with --json or --quiet nobody sees what is to go: give --dry-run or --yes too")
    stored = _open(gates, history)
    summaries = stored.summaries(EVERY_RUN)
    runs = stored_runs(summaries)
    chosen = runs_before(runs, before) if before is not None else runs_beyond(runs, keep or 1)
    pruned = pruned_runs(runs, chosen, summaries, needs_of(Path(gates), Path.cwd()))
    text = partial(pruned_text, pruned, width=width(), color=color())
    if dry_run or not pruned.gone:
        answer(partial(text, done=False), partial(_removed, pruned, done=False), as_json=as_json, quiet=quiet)
        return 0
    if not yes:
        say(text(done=False))
        if not _agreed():
            raise UsageError("nothing is removed: give --yes to remove these runs")
    stored.remove_runs({run.run_id for run in pruned.gone})
    removed = text(done=True) if yes else f"{figures.count(len(pruned.gone), 'run')} removed"
    answer(lambda: removed, partial(_removed, pruned, done=True), as_json=as_json, quiet=quiet)
    return 0


def _removed(pruned: "PrunedRuns", *, done: bool) -> dict[str, object]:
    """Return what was removed, or would be, for programs."""
    return {"removed": done, **pruned.model_dump(mode="json")}


def _agreed() -> bool:
    """Whether somebody at a terminal wants it."""
    return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm("Remove these runs?", err=True)


def _open(gates: str, history: str | None) -> "History":
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.integrity.tracked_folders import open_history

    return open_history(history or policy_or_default(Path(gates)).history, Checkout(Path.cwd()))
