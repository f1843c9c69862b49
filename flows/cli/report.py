"""`passgate report`: write the page of a run."""

from passgate.flows.cli import options


def report(
    run: options.RunArgument,
    history: options.HistoryOption = None,
    open_page: options.OpenOption = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Write the page of a run: one HTML file, and beside it the trials that it has no room for."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import open_in_browser
    from passgate.tasks.commands.report import write_run_page
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.messages import warn

    written = write_run_page(find_run(run), history)
    answer(lambda: written.shown, lambda: {"page": written.shown}, as_json=as_json, quiet=quiet)
    if written.without_history:
        warn(f"the page shows no history: {written.without_history}")
    if open_page:
        open_in_browser(written.file.absolute().as_uri())
    return 0
