"""Commands that show results: `passgate report`, `view`, `trend` and `traces`."""

import os
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from passgate.flows.cli import options
from passgate.flows.cli.history import named_history
from passgate.flows.cli.output import answer, color, is_screen, open_in_browser, output_form, width, write_output
from passgate.tasks.errors import UsageError
from passgate.tasks.model.names import GateName, Period
from passgate.tasks.reports.messages import warn

# The ending of standard output, a pipe or a device is empty.
_FORMATS: Final = {"": "table", ".txt": "table", ".json": "json", ".html": "html"}
"""The format of a trend by the ending of its file."""


def report(
    run: options.RunArgument, history: options.HistoryOption = None, open_page: options.OpenOption = False
) -> None:
    """Write the page of a run: one HTML file, and beside it the trials that it has no room for."""
    from passgate.tasks.commands.report import write_run_page
    from passgate.tasks.planning.find_run import find_run

    page = write_run_page(find_run(run), history)
    shown = os.path.relpath(page.file)
    answer(lambda: shown, {"page": shown})
    if page.without_history:
        warn(f"the page shows no history: {page.without_history}")
    if open_page:
        open_in_browser(page.file.absolute().as_uri())


def view(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Open the page of this run: its id, the start of it, or `last`.",
            autocompletion=options.complete_runs,
        ),
    ] = None,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            rich_help_panel="Output",
            help="Open the page in the browser. Default: only if standard output is a terminal.",
        ),
    ] = None,
) -> None:
    """Write the pages of all runs and of the trends, and open them in the browser."""
    from passgate.tasks.commands.view import write_pages
    from passgate.tasks.planning.find_run import find_run, refuse_tracked_runs

    run_id = None
    if run is None:
        refuse_tracked_runs()
    elif "://" in (run_id := find_run(run)):
        raise UsageError(f"{run_id} is not a run of this folder: write its page with `passgate report {run_id}`")
    page, failures = write_pages(run_id)
    shown = os.path.relpath(page)
    answer(lambda: shown, {"page": shown})
    for failure in failures:
        warn(failure)
    if is_screen() and not output_form.get().as_json if open_page is None else open_page:
        open_in_browser(page.absolute().as_uri())


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
        Literal["table", "json", "html"] | None,
        typer.Option("--format", help="Default: as the output file ends, else table."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file.", parser=options.named_path)
    ] = None,
) -> None:
    """Show what has changed since when, by which task, and how each suite does."""
    from passgate.tasks.commands.trend import TrendRequest, read_trend
    from passgate.tasks.history.dataset import RunSelection
    from passgate.tasks.reports.trend import trend_html, trend_screen

    suffix = "" if output is None else output.suffix.lower()
    chosen = "json" if output_form.get().as_json else output_format or _FORMATS.get(suffix)
    if chosen is None:
        raise typer.BadParameter(f"{output}: name a file that ends with .txt, .json or .html, or add --format")
    request, runs = TrendRequest(gate, agent, model, task, by or Period.WEEK), RunSelection(since or "", until or "")
    found = read_trend(named_history(gates, history), request, runs, None if suite is None else str(suite))
    match chosen:
        case "table":
            text = trend_screen(found, width=width(), color=color(), periods=by is not None)
        case "json":
            text = found.model_dump_json(indent=2) + "\n"
        case _:
            text = trend_html(found)
    if output is not None:
        write_output(text, output)
    else:
        answer(lambda: text, text)
    if found.not_shown:
        warn(f"not shown: runs of {', '.join(found.not_shown)} (see --gate and --agent)")


def traces(
    run: options.RunArgument = "last",
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The URL that takes traces by OTLP over HTTP. Default: as OTEL_EXPORTER_OTLP_ENDPOINT says.",
        ),
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Also send messages, and the arguments and results of tools.")
    ] = False,
) -> None:
    """Send each recorded trial of a run as an OpenTelemetry trace."""
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.figures import count

    try:
        from passgate.tasks.commands.traces import send_traces
    except ImportError as error:
        raise UsageError("traces need the extra `otel`: pip install 'passgate[otel]'") from error
    sent = send_traces(find_run(run), endpoint=endpoint, with_content=content)
    answer(lambda: f"sent {count(sent, 'span')}", {"spans": sent})
