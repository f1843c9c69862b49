"""`passgate trend`: what has changed in the history, and how the suites do."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options
from passgate.tasks.model.names import GateName, Period

if TYPE_CHECKING:
    from passgate.tasks.model.history import Trend


class TrendFormat(StrEnum):
    """The formats of a trend."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


_OF_SUFFIX = {
    "": TrendFormat.TABLE,  # standard output, a pipe, a device
    ".txt": TrendFormat.TABLE,
    ".json": TrendFormat.JSON,
    ".html": TrendFormat.HTML,
}


def trend(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    gate: Annotated[
        GateName | None,
        typer.Option(metavar="GATE", help="Default: the gate of the newest run.", parser=options.named_gate),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="SPEC", help="Default: the agent of the newest run.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only tasks that this model answered.")] = None,
    suite: options.OnlySuiteOption = None,
    task: Annotated[str | None, typer.Option(metavar="TASK", help="Only this task, by its task_id.")] = None,
    since: options.SinceOption = None,
    until: options.UntilOption = None,
    by: Annotated[
        Period | None, typer.Option(help="Also list the suites by this period. Default in files: week.")
    ] = None,
    output_format: Annotated[
        TrendFormat | None, typer.Option("--format", help="Default: as the output file ends, else table.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to this file.", parser=options.named_path),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Show what has changed since when, by which task, and how each suite does."""
    from passgate.flows.cli.output import put
    from passgate.tasks.commands.trend import TrendRequest, read_trend
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.history.dataset import RunSelection
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.integrity.tracked_folders import open_history
    from passgate.tasks.reports.messages import warn

    chosen = TrendFormat.JSON if as_json else output_format or _format_of(output)
    opened = open_history(history or policy_or_default(Path(gates)).history, Checkout(Path.cwd()))
    request = TrendRequest(gate, agent, model, task, by or Period.WEEK)
    found = read_trend(opened, request, RunSelection(since or "", until or ""), None if suite is None else str(suite))
    if as_json or output is not None or not quiet:
        put(_rendered(found, chosen, periods=by is not None), output)
    if found.not_shown:
        warn(f"not shown: runs of {', '.join(found.not_shown)} (see --gate and --agent)")
    return 0


def _format_of(output: Path | None) -> TrendFormat:
    """Return the format of a file's name. Raise `BadParameter` if it ends with another one."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix not in _OF_SUFFIX:
        known = ", ".join(ending for ending in _OF_SUFFIX if ending)
        first, _, last = known.rpartition(", ")
        raise typer.BadParameter(f"{output}: name a file that ends with {first} or {last}, or add --format")
    return _OF_SUFFIX[suffix]


def _rendered(trend: "Trend", chosen: TrendFormat, *, periods: bool) -> str:
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.reports.trend import trend_html, trend_screen

    match chosen:
        case TrendFormat.TABLE:
            return trend_screen(trend, width=width(), color=color(), periods=periods)
        case TrendFormat.JSON:
            return trend.model_dump_json(indent=2) + "\n"
        case TrendFormat.HTML:
            return trend_html(trend)
