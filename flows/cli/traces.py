"""`passgate traces`: send the trials of a run to an OpenTelemetry endpoint."""

from typing import Annotated

import typer

from passgate.flows.cli import options


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
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Send each recorded trial of a run as an OpenTelemetry trace."""
    from passgate.flows.cli.output import answer
    from passgate.tasks.commands.traces import send_traces
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.figures import count

    sent = send_traces(find_run(run), endpoint=endpoint, with_content=content)
    answer(lambda: f"sent {count(sent, 'span')}", lambda: {"spans": sent}, as_json=as_json, quiet=quiet)
    return 0
