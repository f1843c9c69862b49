"""`passgate view`: the pages of all runs in the browser."""

from typing import Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_runs


def view(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Open the page of this run: its id, the start of it, or `last`.",
            autocompletion=complete_runs,
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
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Write the pages of all runs and of the trends, and open them in the browser."""
    import os
    from pathlib import Path

    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import is_screen, open_in_browser
    from passgate.tasks.commands.view import write_pages
    from passgate.tasks.errors import UsageError
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.planning.find_run import find_run, refuse_tracked_runs
    from passgate.tasks.reports.messages import warn

    found = None
    if run is None:
        refuse_tracked_runs(Checkout(Path.cwd()))
    elif "://" in (found := find_run(run)):
        raise UsageError(f"{found} is not a run of this folder: write its page with `passgate report {found}`")
    written = write_pages(found)
    shown = os.path.relpath(written.page)
    answer(lambda: shown, lambda: {"page": shown}, as_json=as_json, quiet=quiet)
    for message in written.left_out:
        warn(message)
    if is_screen() and not as_json if open_page is None else open_page:
        open_in_browser(written.page.absolute().as_uri())
    return 0
