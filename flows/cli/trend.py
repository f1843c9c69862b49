"""`passgate trend`: show the history as a table and a plot."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options


def trend(
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    agent: Annotated[str | None, typer.Option(metavar="SPEC", help="Default: the agent of the newest run.")] = None,
    plot: options.PlotOption = None,
) -> int:
    """Show the history by suite and day. Mark every day with a run that is worse than the others."""
    from passgate.flows.cli.terminal import color, say, width, write_plot
    from passgate.tasks.commands.trend import COLUMNS, trend_points
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.integrity.earlier_runs import open_history, read_earlier_summaries
    from passgate.tasks.integrity.git import Checkout
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE, warn
    from passgate.tasks.reports.trend import trend_table

    location = history or policy_or_default(Path(gates)).history
    history_read = open_history(location, Checkout(Path.cwd()))
    earlier = read_earlier_summaries(history_read, Path.cwd(), datetime.now(UTC), COLUMNS)
    points = trend_points(earlier.table)
    if not points:
        raise UsageError(f"the history {location} has no runs yet: `passgate run` makes the first")
    shown = agent or points[-1].agent  # the newest run is last
    others = sorted({point.agent for point in points} - {shown})
    points = [point for point in points if point.agent == shown]
    if not points:
        raise UsageError(f"the history {location} has no runs of {shown}; it has runs of {', '.join(others)}")
    say(printable(f"agent {shown}", LONGEST_MESSAGE) + "\n")
    say(trend_table(points, width=width(), color=color()))
    if plot is not None:
        from passgate.tasks.reports.plots import trend_plot

        write_plot(plot, trend_plot(points))
        say(f"plot  {plot}")
    if earlier.left_out:
        warn(earlier.left_out)
    if others:
        warn(f"not shown: runs of {', '.join(others)} (see --agent)")
    return 0
