"""`passgate history`: the stored runs of a history."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

history = typer.Typer(help="Look after the history of all runs.", no_args_is_help=True)
OtherRun = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The other run. Default: the one before it, of the same gate and agent."),
]


@history.command("list")
def list_(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    as_json: options.JsonOption = False,
) -> int:
    """List the stored runs, the newest last."""
    from pydantic import TypeAdapter

    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.history import COLUMNS, stored_runs
    from passgate.tasks.model.recorded_run import RecordedRun
    from passgate.tasks.reports.stored_runs import stored_runs_table

    runs = stored_runs(_read(gates, history, COLUMNS))
    if as_json:
        say(TypeAdapter(tuple[RecordedRun, ...]).dump_json(runs, indent=2).decode())
    else:
        say(stored_runs_table(runs, width=width(), color=color()))
    return 0


@history.command()
def compare(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run: its id, how its id begins, or `last`.")],
    with_run: OtherRun = None,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
) -> int:
    """Compare a run with another one, task by task."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.history import COLUMNS, run_before, run_named, stored_runs, task_differences
    from passgate.tasks.reports.stored_runs import differences_table

    summaries = _read(gates, history, COLUMNS)
    runs = stored_runs(summaries)
    after = run_named(runs, run)
    before = run_before(runs, after) if with_run is None else run_named(runs, with_run)
    before, after = sorted((before, after), key=lambda one: one.run_id)
    say(differences_table(before, after, task_differences(summaries, before, after), width=width(), color=color()))
    return 0


@history.command()
def compact(gates: options.GatesOption = "gates.yaml", history: options.HistoryOption = None) -> int:
    """Join the summaries of each past month into one file, so that they are read faster."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.integrity.earlier_runs import open_history
    from passgate.tasks.integrity.git import Checkout

    stored = open_history(history or policy_or_default(Path(gates)).history, Checkout(Path.cwd()))
    joined = stored.compact(f"{datetime.now(UTC):%Y-%m}")
    say(f"{joined} files of summaries are joined" if joined else "nothing to join")
    return 0


def _read(gates: str, history: str | None, columns: "Sequence[str]") -> "pa.Table":
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.integrity.earlier_runs import open_history, read_earlier_summaries
    from passgate.tasks.integrity.git import Checkout
    from passgate.tasks.reports.messages import warn

    stored = open_history(history or policy_or_default(Path(gates)).history, Checkout(Path.cwd()))
    earlier = read_earlier_summaries(stored, Path.cwd(), datetime.now(UTC), columns)
    if earlier.left_out:
        warn(earlier.left_out)
    return earlier.table
