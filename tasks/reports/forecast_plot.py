"""A forecast as a picture: how often the gate is red, by how often one of its tasks passes."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from passgate.tasks.model.forecast import Forecast
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.svg import BLUE, GRID, VERMILION, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POLICY = {"color": BLUE, "linewidth": 2.2}
_STRICT = {"color": VERMILION, "linewidth": 1.6, "linestyle": (0, (5, 3))}
_NEAR = 0.05
"""Two marks that are no further apart would cover each other's texts."""
_LOW = 0.2


def plot(forecast: Forecast) -> str:
    """An SVG of the forecast's curve, for its policy and for the strict rule; the same text for the same forecast.

    Raises UsageError where matplotlib is missing.
    """
    return svg(lambda: _figure(forecast), "How often the gate is red")


def _figure(forecast: Forecast) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    panel = figure.subplots()
    _frame(panel, forecast)
    rates = [point.pass_rate for point in forecast.curve]
    _line(panel, rates, [point.red for point in forecast.curve], "this policy", _POLICY)
    _line(panel, rates, [point.strict_red for point in forecast.curve], "strict rule: any failed task blocks", _STRICT)
    usual = fmean(task.pass_rate for task in forecast.tasks) if forecast.tasks else 1.0
    if forecast.strict_red - forecast.red > _NEAR:
        _mark(panel, usual, forecast.strict_red, _STRICT["color"])
    _mark(panel, usual, forecast.red, _POLICY["color"])
    panel.legend(loc="lower right", frameon=False)
    return figure


def _frame(panel: "Axes", forecast: Forecast) -> None:
    title = printable(f"{forecast.gate}: how often the gate is red when one task falls", NAME)
    panel.set_title(title, loc="left", fontweight="bold", fontsize=10, parse_math=False)
    panel.set_xlabel("how often the task passes (all others as usual)")
    panel.set_xlim(1.0, 0.3)
    panel.set_ylim(0, 1.02)
    panel.set_xticks([one / 10 for one in range(10, 2, -1)], [f"{one * 10} %" for one in range(10, 2, -1)])
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    panel.grid(axis="y", color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(which="both", length=0)


def _line(panel: "Axes", rates: Sequence[float], reds: Sequence[float], label: str, look: dict[str, Any]) -> None:
    panel.plot(rates, reds, label=label, clip_on=False, solid_capstyle="round", **look)


def _mark(panel: "Axes", usual: float, red: float, color: Any) -> None:
    """Where nothing has fallen: every red there is a false one. The text stands where no curve goes: over one that
    begins low, under one that begins high."""
    is_low = red < _LOW
    panel.plot([usual], [red], marker="o", markersize=7, color=color, linestyle="none", clip_on=False)
    panel.annotate(
        f"{figures.percent(red)}\nunchanged",
        (usual, red),
        xytext=(8, 18 if is_low else -8),
        textcoords="offset points",
        ha="left",
        va="bottom" if is_low else "top",
        color=color,
        fontweight="bold",
        parse_math=False,
    )
