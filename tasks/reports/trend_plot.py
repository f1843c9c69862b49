"""The trend as a picture."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.task import Suite
from passgate.tasks.reports import figures
from passgate.tasks.reports.svg import BLUE, GRID, QUIET, VERMILION, svg
from passgate.tasks.reports.trend import by_suite, worse_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_RUN = {"color": BLUE, "marker": "o", "markersize": 4.5}
_WORSE = {"color": VERMILION, "marker": "v", "markersize": 8}
_NO_VALUE = {"color": QUIET, "marker": "x", "markersize": 5}
_LABELS = 8
_NEVER = datetime.max.replace(tzinfo=UTC)
# Labels of ticks at years, months, days, hours, minutes and seconds; without the names of a locale.
_DATE_FORMATS = ["%Y", "%Y-%m", "%Y-%m-%d", *["%Y-%m-%d\n%H:%M"] * 3]


def plot(points: Sequence[TrendPoint]) -> str:
    """An SVG with a panel per suite over one axis of time; the same text for the same points.

    Where all runs lie within a day the axis is their order. Raises UsageError where matplotlib is missing.
    """
    return svg(lambda: _figure(points), "Each suite's value by run")


def _figure(points: Sequence[TrendPoint]) -> "Figure":
    from matplotlib.figure import Figure

    suites = list(by_suite(points))
    figure = Figure(figsize=(9, 0.9 + 1.6 * len(suites)), layout="constrained")
    if not suites:
        figure.text(0.5, 0.5, "No runs", ha="center", va="center")
        return figure
    panels: list[Axes] = figure.subplots(len(suites), 1, sharex=True, squeeze=False)[:, 0].tolist()
    places = _lay_axis(panels[-1], points)
    for panel, (suite, of_suite) in zip(panels, suites, strict=True):
        _frame(panel, suite)
        _draw(panel, of_suite, places)
    figure.legend(handles=_legend(suites), loc="outside upper right", ncols=3, frameon=False)
    return figure


def _lay_axis(panel: "Axes", points: Sequence[TrendPoint]) -> Mapping[str, float]:
    """Labels the axis that the panels share; returns where each run stands on it."""
    dates = import_module("matplotlib.dates")  # its functions have no types
    starts: dict[str, datetime] = {}
    for point in points:  # the suites of a run begin one after the other
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


def _frame(panel: "Axes", suite: Suite) -> None:
    panel.set_title(suite, loc="left", fontweight="bold", fontsize=10)
    panel.set_ylim(-5, 108)
    panel.set_yticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    panel.set_yticks([25, 75], minor=True)
    panel.grid(axis="y", which="both", color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(which="both", length=0)


def _draw(panel: "Axes", points: Sequence[TrendPoint], places: Mapping[str, float]) -> None:
    worse = worse_runs(points)
    valued = [(places[point.run_id], point.value * 100) for point in points if point.value is not None]
    panel.plot([place for place, _ in valued], [value for _, value in valued], color=_RUN["color"], alpha=0.3)
    for point in points:
        look = _NO_VALUE if point.value is None else _WORSE if point.run_id in worse else _RUN
        _draw_run(panel, places[point.run_id], point, look)
    lowest = min((point for point in points if point.run_id in worse), key=_value, default=None)
    if lowest is not None:
        _name_value(panel, places[lowest.run_id], lowest)


def _draw_run(panel: "Axes", place: float, point: TrendPoint, look: Mapping[str, Any]) -> None:
    if point.low is not None and point.high is not None:
        panel.vlines(place, point.low * 100, point.high * 100, color=look["color"], alpha=0.6, linewidth=1.6)
    panel.plot([place], [_value(point) * 100], linestyle="none", clip_on=False, **look)


def _name_value(panel: "Axes", place: float, point: TrendPoint) -> None:
    """Writes the value of the lowest run beside it: more labels than one would cover each other."""
    panel.annotate(
        figures.percent(point.value),
        (place, _value(point) * 100),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        color=_WORSE["color"],
        fontweight="bold",
        parse_math=False,
    )


def _value(point: TrendPoint) -> float:
    """The value; the bottom of the panel where there is none."""
    return 0.0 if point.value is None else point.value


def _legend(suites: Sequence[tuple[Suite, Sequence[TrendPoint]]]) -> "list[Line2D]":
    """What the marks mean, for those marks that there are."""
    from matplotlib.lines import Line2D

    entries: list[tuple[str, dict[str, Any]]] = [("run, with its 95 % interval", _RUN)]
    if any(worse_runs(points) for _, points in suites):
        entries.append(("worse than the suite's other runs", _WORSE))
    if any(point.value is None for _, points in suites for point in points):
        entries.append(("no value: too little was measured", _NO_VALUE))
    return [Line2D([], [], linestyle="none", label=label, **look) for label, look in entries]
