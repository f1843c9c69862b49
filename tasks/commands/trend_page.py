"""The trend of a gate as a page, by what the history says now."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from passgate.tasks.commands.trend import COLUMNS, TrendRequest, trend_of
from passgate.tasks.errors import UsageError
from passgate.tasks.formats.loading import policy_or_default
from passgate.tasks.integrity.earlier_runs import open_history, read_earlier_summaries
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.model.task import GateName
from passgate.tasks.model.trend import Trend
from passgate.tasks.reports import plots
from passgate.tasks.reports.trend_files import trend_html

GATES: Final = "gates.yaml"


def trend_page(gate: GateName, *, home: str, gates: Path | None = None) -> str:
    """The trend of a gate and of the agent of its newest run, as HTML. `home` is the link to all runs.

    Raises `PassgateError` where the history has no run of the gate or cannot be read.
    """
    location = policy_or_default(gates or Path(GATES)).history
    history = open_history(location, Checkout(Path.cwd()))
    earlier = read_earlier_summaries(history, Path.cwd(), datetime.now(UTC), COLUMNS)
    if not len(earlier.table):
        raise UsageError(f"the history {location} has no runs yet: `passgate run` makes the first")
    found = trend_of(earlier.table, TrendRequest(gate))
    return trend_html(found, drawn(found), home=home)


def drawn(trend: Trend) -> str:
    """The plot of a trend as SVG; empty where there is no matplotlib."""
    try:
        return plots.trend_plot(trend.points, trend.changes)
    except UsageError:
        return ""
