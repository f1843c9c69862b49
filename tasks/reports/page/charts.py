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


class Bar(NamedTuple):
    """One bar of a histogram."""

    x: float
    y: float
    height: float


class Quantile(NamedTuple):
    """A value of a distribution and where it lies."""

    name: str
    value: float
    x: float


class Histogram(NamedTuple):
    """How one figure is spread now, above a line, and at the baseline, below it. The axis is logarithmic."""

    now: tuple[Bar, ...]
    before: tuple[Bar, ...]
    low: float
    high: float
    now_quantiles: tuple[Quantile, ...]
    before_quantiles: tuple[Quantile, ...]
    now_count: int
    before_count: int


def histogram(now: Sequence[float], before: Sequence[float]) -> Histogram | None:
    """Both distributions over one axis; `None` without a figure above 0 now."""
    now, before = ([value for value in values if value > 0 and math.isfinite(value)] for values in (now, before))
    if not now:
        return None
    low, high = min((*now, *before)), max((*now, *before))
    if high < low * _NEAR:
        low, high = low / 2, high * 2
    width = math.log(high / low)

    def place(value: float) -> float:
        return math.log(value / low) / width

    def bars(values: Sequence[float], *, above: bool) -> tuple[Bar, ...]:
        counts = [0] * BINS
        for value in values:
            counts[min(BINS - 1, int(place(value) * BINS))] += 1
        most = max(counts, default=0) or 1
        heights = [BIN_HEIGHT * count / most for count in counts]
        return tuple(
            Bar(bin_ * BIN_WIDTH, BIN_HEIGHT - height if above else BIN_HEIGHT + 2, height)
            for bin_, height in enumerate(heights)
            if height
        )

    def quantiles(values: Sequence[float]) -> tuple[Quantile, ...]:
        if not values:
            return ()
        found = (("median", median(values)), ("P95", sorted(values)[math.ceil(0.95 * len(values)) - 1]))
        return tuple(Quantile(name, value, place(value) * BINS * BIN_WIDTH) for name, value in found)

    return Histogram(
        bars(now, above=True),
        bars(before, above=False),
        low,
        high,
        quantiles(now),
        quantiles(before),
        len(now),
        len(before),
    )
