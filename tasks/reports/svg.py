"""Figures of matplotlib as SVG: the same text for the same figure."""

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

from passgate.tasks.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib is an extra: this module can be imported without it, and only a plot costs its start-up time.
TEXT = "#24292f"
QUIET = "#6e7781"
GRID = "#e4e8ec"
# Okabe and Ito's, which every kind of colour vision tells apart.
BLUE = "#0072b2"
VERMILION = "#d55e00"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "passgate",
    "svg.fonttype": "none",
    "timezone": "UTC",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": TEXT,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
}


def svg(draw: Callable[[], "Figure"], title: str) -> str:
    """The SVG of the figure that `draw` makes under passgate's settings of matplotlib, whatever the user's own are.

    Raises `UsageError` where matplotlib is missing.
    """
    try:
        from matplotlib import rc_context, rcdefaults, rcParams
    except ImportError as error:
        raise UsageError("A plot needs matplotlib: pip install 'passgate[plot]'") from error
    text = StringIO()
    with rc_context():
        rcdefaults()
        rcParams.update(_SETTINGS)
        draw().savefig(text, format="svg", metadata={"Title": title, "Date": None, "Creator": None})
    return text.getvalue()
