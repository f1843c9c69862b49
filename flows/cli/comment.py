"""`passgate comment`: show a verdict on its pull request."""

from typing import Annotated

import typer

from passgate.flows.cli import options


def comment(
    run: options.RunArgument = "last",
    pull_request: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="The pull request or merge request. Default: that of the CI job."),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Write the verdict of a run as a comment of its pull request. Change the comment of an earlier run of the gate."""
    import os

    from passgate.flows.cli.output import answer
    from passgate.tasks.commands.comment import comment as write
    from passgate.tasks.commands.comment import comment_service
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE

    run_id, service = find_run(run), comment_service(os.environ, pull_request)
    address = write(run_id, service)
    answer(
        lambda: f"commented  {printable(address or service.name, LONGEST_MESSAGE)}",
        lambda: {"service": service.name, "address": address},
        as_json=as_json,
        quiet=quiet,
    )
    return 0
