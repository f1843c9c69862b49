"""`passgate trend`: the history as a table and a plot."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli.options import GatesOption, HistoryOption


def trend(
    gates: GatesOption = "gates.yaml",
    history: HistoryOption = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw it too.")] = None,
) -> int:
    """Show the history by suite and day; a day with a run worse than the others is marked."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.errors import StorageError, UsageError
    from passgate.tasks.history.dataset import History
    from passgate.tasks.load import policy_or_default
    from passgate.tasks.reports.trend import trend_table
    from passgate.tasks.trend import COLUMNS, trend_points

    location = history or policy_or_default(Path(gates)).history
    points = trend_points(History(location).trials(columns=COLUMNS))
    if not points:
        raise UsageError(f"the history {location} has no runs yet: `passgate run` makes the first")
    say(trend_table(points, width=width(), color=color()))
    if plot is not None:
        from passgate.tasks.reports.trend_plot import plot as draw

        try:
            plot.write_text(draw(points), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write {plot}: {error}") from error
        say(f"plot  {plot}")
    return 0
