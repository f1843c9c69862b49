"""`passgate history`: the stored runs of a history."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from passgate.flows.cli import options
from passgate.flows.cli.output import OutputForm, answer, color, output_form, say, width
from passgate.tasks.errors import UsageError

if TYPE_CHECKING:
    from passgate.tasks.history.dataset import History

history = typer.Typer(help="Look after the history of all runs.", no_args_is_help=True)


RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run: its id, how its id begins, or `last`.", autocompletion=options.complete_runs
    ),
]


@history.command("list")
def list_(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    since: options.SinceOption = None,
) -> None:
    """List the stored runs with their verdicts, the newest last."""
    from passgate.tasks.commands.history import add_verdict, stored_runs
    from passgate.tasks.history.dataset import RunSelection
    from passgate.tasks.reports.stored_runs import stored_runs_table

    summaries = named_history(gates, history).summaries(RunSelection(since or ""))
    runs = tuple(map(add_verdict, stored_runs(summaries)))
    answer(lambda: stored_runs_table(runs, width=width(), color=color()), runs)


@history.command()
def compare(
    run: RunArgument,
    with_run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="The other run. Default: the one before it, of the same gate and agent."),
    ] = None,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
) -> None:
    """Compare a run with another one, task by task."""
    from passgate.tasks.commands.history import compare_runs
    from passgate.tasks.reports.stored_runs import differences_table

    before, after, differences = compare_runs(named_history(gates, history), run, with_run)
    answer(
        lambda: differences_table(before, after, differences, width=width(), color=color()),
        {"before": before, "after": after, "tasks": differences},
    )


@history.command()
def show(
    run: RunArgument,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", help="The format.")] = "table",
) -> None:
    """Show what the history says of a run, task by task."""
    from passgate.tasks.commands.history import run_details
    from passgate.tasks.reports.stored_runs import run_summary

    details = run_details(named_history(gates, history), run)
    if output_format == "json":
        output_form.set(OutputForm(as_json=True))
    answer(lambda: run_summary(details, width=width(), color=color()), details)


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
) -> None:
    """Remove old runs from the history. Runs that are pinned or that a baseline needs stay."""
    from passgate.tasks.commands.history import baseline_needs, prunable_runs
    from passgate.tasks.history.dataset import EVERY_RUN
    from passgate.tasks.reports import figures
    from passgate.tasks.reports.stored_runs import pruned_text

    if (before is None) is (keep is None):
        raise UsageError("give --before or --keep to say what is to go, not both")
    if any(output_form.get()) and not (dry_run or yes):
        raise UsageError("with --json or --quiet nobody sees what is to go: give --dry-run or --yes too")
    stored = named_history(gates, history)
    summaries = stored.summaries(EVERY_RUN)
    needs = baseline_needs(Path(gates), Path.cwd())
    pruned = prunable_runs(summaries, needs, before=before, keep=keep or 0)
    removes = bool(pruned.gone) and not dry_run
    text = pruned_text(pruned, width=width(), color=color(), done=removes and yes)
    if removes:
        if not yes:
            say(text)
            is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
            if not (is_terminal and typer.confirm("Remove these runs?", err=True)):
                raise UsageError("nothing is removed: give --yes to remove these runs")
            text = f"{figures.count(len(pruned.gone), 'run')} removed"
        stored.remove_runs({run.run_id for run in pruned.gone})
    document = {"removed": removes, **pruned.model_dump(mode="json")}
    answer(lambda: text, document)


def named_history(gates: str, history: str | None) -> "History":
    """Open the history that an option names, or else the one of a gates file. Raise `InputError`, `UsageError`."""
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.integrity.tracked_folders import open_history

    return open_history(history or policy_or_default(Path(gates)).history)
