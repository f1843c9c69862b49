"""The trend and a forecast as pictures: SVG by matplotlib, the same text for the same values.

matplotlib is an extra: this module can be imported without it, and only a plot costs its start-up time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import BytesIO, StringIO
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from passgate.tasks.errors import UsageError
from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.forecast import Forecast
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trend import Quantity, TrendChange
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import NAME
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.trend import by_suite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_TEXT = "#24292f"
_QUIET = "#6e7781"
_GRID = "#e4e8ec"
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
_BLUE = "#0072b2"
_VERMILION = "#d55e00"
_SETTINGS: dict[Any, Any] = {
    # Without a salt the ids in an SVG are random, so the same values would not give the same text.
    "svg.hashsalt": "passgate",
    # Text stays text, which a reader can search, in place of drawn outlines.
    "svg.fonttype": "none",
    "timezone": "UTC",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _TEXT,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
}
_RUN: dict[str, Any] = {"color": _BLUE, "marker": "o", "markersize": 4.5}
_WORSE: dict[str, Any] = {"color": _VERMILION, "marker": "v", "markersize": 8}
_NO_VALUE: dict[str, Any] = {"color": _QUIET, "marker": "x", "markersize": 5}
_LABELS = 8
_NEVER = datetime.max.replace(tzinfo=UTC)
# Labels of ticks at years, months, days, hours, minutes and seconds; without the names of a locale.
_DATE_FORMATS = ["%Y", "%Y-%m", "%Y-%m-%d", *["%Y-%m-%d\n%H:%M"] * 3]
_POLICY: dict[str, Any] = {"color": _BLUE, "linewidth": 2.2}
_STRICT: dict[str, Any] = {"color": _VERMILION, "linewidth": 1.6, "linestyle": (0, (5, 3))}


def trend_plot(points: Sequence[TrendPoint], changes: Sequence[TrendChange] = ()) -> str:
    """An SVG with a panel per suite over one axis of time; the same text for the same points.

    It marks the runs with which a pass rate became lastingly worse. Where all runs lie within a day the axis is their
    order. Raises UsageError where matplotlib is missing.
    """
    return _svg(lambda: _trend_figure(points, changes), "Each suite's value by run")


def trend_image(points: Sequence[TrendPoint], changes: Sequence[TrendChange] = ()) -> bytes:
    """The same as PNG."""
    return _png(lambda: _trend_figure(points, changes))


def _worse(suite: Suite, changes: Sequence[TrendChange]) -> frozenset[str]:
    return frozenset(
        change.first_after.run_id
        for change in changes
        if change.suite is suite and change.is_worse and change.quantity is Quantity.PASS_RATE
    )


def _trend_figure(points: Sequence[TrendPoint], changes: Sequence[TrendChange]) -> "Figure":
    from matplotlib.figure import Figure

    suites = list(by_suite(points))
    figure = Figure(figsize=(9, 0.9 + 1.6 * len(suites)), layout="constrained")
    if not suites:
        figure.text(0.5, 0.5, "No runs", ha="center", va="center")
        return figure
    panels: list[Axes] = figure.subplots(len(suites), 1, sharex=True, squeeze=False)[:, 0].tolist()
    places = _lay_axis(panels[-1], points)
    for panel, (suite, of_suite) in zip(panels, suites, strict=True):
        _frame(panel, suite, "both")
        # A margin beyond 0 and 100, so that no marker at an end is cut off.
        panel.set_ylim(-5, 108)
        panel.set_yticks([0, 50, 100], ["0 %", "50 %", "100 %"])
        panel.set_yticks([25, 75], minor=True)
        _draw_runs(panel, of_suite, places, _worse(suite, changes))
    figure.legend(
        handles=_legend(suites, any(_worse(suite, changes) for suite, _ in suites)),
        loc="outside upper right",
        ncols=3,
        frameon=False,
    )
    return figure


def _lay_axis(panel: "Axes", points: Sequence[TrendPoint]) -> Mapping[str, float]:
    """Label the axis that the panels share; returns where each run stands on it."""
    dates = import_module("matplotlib.dates")  # its functions have no types
    starts: dict[str, datetime] = {}
    # The suites of a run begin one after the other; the run stands at the first.
    for point in points:
        starts[point.run_id] = min(point.started_at.astimezone(UTC), starts.get(point.run_id, _NEVER))
    runs = sorted((started_at, run_id) for run_id, started_at in starts.items())
    if len(runs) > 1 and runs[-1][0] - runs[0][0] > timedelta(days=1):
        locator = dates.AutoDateLocator(minticks=3, maxticks={dates.DAILY: _LABELS, dates.HOURLY: _LABELS})
        formatter = dates.ConciseDateFormatter(
            locator, formats=_DATE_FORMATS, zero_formats=_DATE_FORMATS, show_offset=False
        )
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(formatter)
        return {run_id: float(dates.date2num(started_at)) for started_at, run_id in runs}
    step = -(-len(runs) // _LABELS) or 1
    labels = [f"{started_at:%Y-%m-%d}\n{started_at:%H:%M}" for started_at, _ in runs]
    panel.set_xticks(range(0, len(runs), step), labels[::step])
    panel.set_xlim(-0.5, max(1, len(runs)) - 0.5)
    return {run_id: float(position) for position, (_, run_id) in enumerate(runs)}


def _frame(panel: "Axes", title: str, grid_lines: Literal["major", "both"]) -> None:
    panel.set_title(title, loc="left", fontweight="bold", fontsize=10, parse_math=False)
    panel.grid(axis="y", which=grid_lines, color=_GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(which="both", length=0)


def _draw_runs(
    panel: "Axes", points: Sequence[TrendPoint], places: Mapping[str, float], worse: AbstractSet[str]
) -> None:
    # A run without a value stands at the bottom of the panel.
    heights = {point.run_id: 100 * (point.value or 0.0) for point in points}
    valued = [point.run_id for point in points if point.value is not None]
    panel.plot([places[run] for run in valued], [heights[run] for run in valued], color=_RUN["color"], alpha=0.3)
    for point in points:
        place, look = places[point.run_id], _WORSE if point.run_id in worse else _RUN
        if point.value is None:
            look = _NO_VALUE
        if point.low is not None and point.high is not None:
            panel.vlines(place, point.low * 100, point.high * 100, color=look["color"], alpha=0.6, linewidth=1.6)
        # Unclipped, because a marker at 0 % or 100 % reaches beyond the panel.
        panel.plot([place], [heights[point.run_id]], linestyle="none", clip_on=False, **look)
    if worse & heights.keys():
        # The value stands beside the lowest run only: more labels would cover each other.
        lowest = min((point for point in points if point.run_id in worse), key=lambda point: heights[point.run_id])
        at = (places[lowest.run_id], heights[lowest.run_id])
        _annotate(panel, figures.percent(lowest.value), at, (-8, 0), ha="right", va="top", color=_WORSE["color"])


def _annotate(panel: "Axes", text: str, at: tuple[float, float], offset: tuple[int, int], **look: Any) -> None:
    look |= {"textcoords": "offset points", "fontweight": "bold"}
    # No formulas: matplotlib would take a `$` in the text as the start of one.
    panel.annotate(text, at, xytext=offset, parse_math=False, **look)


def _legend(suites: Sequence[tuple[Suite, Sequence[TrendPoint]]], is_worse: bool) -> "list[Line2D]":
    """What the marks mean, for those marks that appear."""
    from matplotlib.lines import Line2D

    entries: list[tuple[str, dict[str, Any]]] = [("run, with its 95 % interval", _RUN)]
    if is_worse:
        entries.append(("lastingly worse from here", _WORSE))
    if any(point.value is None for _, points in suites for point in points):
        entries.append(("no value: too little was measured", _NO_VALUE))
    return [Line2D([], [], linestyle="none", label=label, **look) for label, look in entries]


def forecast_plot(forecast: Forecast) -> str:
    """An SVG of the forecast's curve, for its policy and for the strict rule; the same text for the same forecast.

    Raises UsageError where matplotlib is missing.
    """
    return _svg(lambda: _forecast_figure(forecast), "How often the gate is red")


def _forecast_figure(forecast: Forecast) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    panel = figure.subplots()
    _frame(panel, printable(f"{forecast.gate}: how often the gate is red when one task falls", NAME), "major")
    panel.set_xlabel("how often the task passes (all others as usual)")
    panel.set_xlim(1.0, 0.3)
    panel.set_ylim(0, 1.02)
    panel.set_xticks([one / 10 for one in range(10, 2, -1)], [f"{one * 10} %" for one in range(10, 2, -1)])
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    rates = [point.pass_rate for point in forecast.curve]
    curves = (
        ([point.red for point in forecast.curve], "this policy", _POLICY),
        ([point.strict_red for point in forecast.curve], "strict rule: any failed task blocks", _STRICT),
    )
    for reds, label, look in curves:
        panel.plot(rates, reds, label=label, clip_on=False, solid_capstyle="round", **look)
    usual = fmean(task.pass_rate for task in forecast.tasks) if forecast.tasks else 1.0
    # Two marks that are closer would cover each other's texts.
    if forecast.strict_red - forecast.red > 0.05:
        _mark(panel, usual, forecast.strict_red, _STRICT["color"])
    _mark(panel, usual, forecast.red, _POLICY["color"])
    panel.legend(loc="lower right", frameon=False)
    return figure


def _mark(panel: "Axes", usual: float, red: float, color: Any) -> None:
    """Mark where nothing has fallen: there every red gate is a false failure."""
    panel.plot([usual], [red], marker="o", markersize=7, color=color, linestyle="none", clip_on=False)
    # The text stands where no curve goes: above a curve that begins low, below one that begins high.
    offset, side = (18, "bottom") if red < 0.2 else (-8, "top")
    _annotate(panel, f"{figures.percent(red)}\nunchanged", (usual, red), (8, offset), ha="left", va=side, color=color)


def _svg(draw: Callable[[], "Figure"], title: str) -> str:
    """The SVG of the figure that `draw` makes. Raises UsageError where matplotlib is missing."""
    text = StringIO()
    with _settings():
        draw().savefig(text, format="svg", metadata={"Title": title, "Date": None, "Creator": None})
    return text.getvalue()


def _png(draw: Callable[[], "Figure"]) -> bytes:
    image = BytesIO()
    with _settings():
        draw().savefig(image, format="png", dpi=150, metadata={"Software": None})
    return image.getvalue()


@contextmanager
def _settings() -> Iterator[None]:
    """passgate's settings of matplotlib, whatever the user's own are."""
    try:
        from matplotlib import rc_context, rcdefaults, rcParams
    except ImportError as error:
        raise UsageError("A plot needs matplotlib: pip install 'passgate[plot]'") from error
    with rc_context():
        rcdefaults()
        rcParams.update(_SETTINGS)
        yield
