"""The places of what charts draw, as numbers: the templates draw them."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from passgate.tasks.model.history import TrendPoint
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports import figures

SPARK_WIDTH: Final = 88
SPARK_HEIGHT: Final = 20
_EDGE = 3
BINS: Final = 28
BIN_WIDTH: Final = 16
BIN_HEIGHT: Final = 52
_NEAR: Final = 1.02
"""Figures that differ less than by this factor lie in one bin."""


class Spark(NamedTuple):
    """The shares of passed trials of runs, the newest last."""

    points: str
    last_x: float
    last_y: float
    label: str


def spark(runs: Sequence[EarlierRun]) -> Spark | None:
    """Return a line of at least one run; `None` without any."""
    if not runs:
        return None
    step = (SPARK_WIDTH - 2 * _EDGE) / max(1, len(runs) - 1)
    places = [
        (_EDGE + step * place, SPARK_HEIGHT - _EDGE - (SPARK_HEIGHT - 2 * _EDGE) * run.passed / run.measured)
        for place, run in enumerate(runs)
    ]
    shares = ", ".join(f"{run.passed}/{run.measured}" for run in runs[-6:])
    what = f"last {len(runs)} runs" if len(runs) > 1 else "last run"
    return Spark(
        " ".join(f"{x:.1f},{y:.1f}" for x, y in places), *places[-1], f"{what}, trials passed, newest last: {shares}"
    )


class ValueLine(NamedTuple):
    """The values of a suite, run by run: a line of 600 by 60 with the places of its runs."""

    suite: str
    points: str
    dots: tuple[tuple[float, float, str], ...]
    """Where a run is, and what it is."""
    label: str


def value_lines(points: Sequence[TrendPoint]) -> tuple[ValueLine, ...]:
    """Return a line for each suite, over the runs that have a value."""
    lines = []
    for suite in Suite:
        known = [(point, point.value) for point in points if point.suite is suite and point.value is not None]
        step = 580 / max(1, len(known) - 1)
        dots = tuple(
            (10 + step * place, 52 - 44 * value, f"{point.started_at:%Y-%m-%d}: {figures.percent(value)}")
            for place, (point, value) in enumerate(known)
        )
        if dots:
            label = f"{suite}: {figures.count(len(dots), 'run')}, the last {figures.percent(known[-1][1])}"
            lines.append(ValueLine(suite.value, " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in dots), dots, label))
    return tuple(lines)


class Spread(NamedTuple):
    """How the values of one side of a histogram are spread."""

    total: int
    bars: tuple[tuple[float, float, float], ...]
    """The place from the left and from the top of each bar, and its height."""
    quantiles: tuple[tuple[str, float], ...]


class Histogram(NamedTuple):
    """How one figure is spread now, above a line, and at the baseline, below it. The axis is logarithmic."""

    now: Spread
    before: Spread
    low: float
    high: float


def histogram(now: Sequence[float], before: Sequence[float]) -> Histogram | None:
    """Both distributions over one axis; `None` without a figure above 0 now."""
    now, before = ([value for value in values if value > 0 and math.isfinite(value)] for values in (now, before))
    if not now:
        return None
    low, high = min((*now, *before)), max((*now, *before))
    if high < low * _NEAR:
        low, high = low / 2, high * 2
    width = math.log(high / low)

    def spread(values: Sequence[float], *, above: bool) -> Spread:
        if not values:
            return Spread(0, (), ())
        counts = [0] * BINS
        for value in values:
            counts[min(BINS - 1, int(math.log(value / low) / width * BINS))] += 1
        heights = [BIN_HEIGHT * count / max(counts) for count in counts]
        bars = (
            (number * BIN_WIDTH, BIN_HEIGHT - height if above else BIN_HEIGHT + 2, height)
            for number, height in enumerate(heights)
            if height
        )
        p95 = sorted(values)[math.ceil(0.95 * len(values)) - 1]
        return Spread(len(values), tuple(bars), (("median", median(values)), ("P95", p95)))

    return Histogram(spread(now, above=True), spread(before, above=False), low, high)
