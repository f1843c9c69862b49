"""Numbers of series, run by run, such as logarithms of seconds."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.change_series import LEAST_BEFORE, Alarms, Floats, Integers, Windows, cells_with, two_levels

_LEAST_AFTER: Final = 3
_CELLS: Final = 1 << 16
"""Series times runs that are looked at together: their numbers stay in a processor's cache."""
_ROUNDING: Final = 1e-9


class Levels:
    """Numbers, such as logarithms of seconds: a series per row and a run per column, NaN where nothing was measured.

    Two windows are compared by Student's t, whose tail is that of a normal one (Wallace 1959).
    """

    def __init__(self, values: Floats, least: float) -> None:
        """`least` is the smallest difference that is a change."""
        known = np.isfinite(values)
        self._centres = _medians(values, known)
        self._values = values - self._centres[:, None]
        self._least = least
        zeros = np.zeros((len(values), 1))
        filled = np.where(known, self._values, 0.0)
        self._known = known
        self._n = np.hstack([zeros, np.cumsum(known, axis=1)])
        self._sum = np.hstack([zeros, np.cumsum(filled, axis=1)])
        self._squares = np.hstack([zeros, np.cumsum(filled**2, axis=1)])
        self._floor = _spreads_of_differences(self._values, known) / 2

    @property
    def series(self) -> int:
        return len(self._values)

    @property
    def runs(self) -> int:
        return int(self._values.shape[1])

    def alarms(self, lengths: Sequence[tuple[int, int]], least: float) -> Iterator[Alarms]:
        at_once = max(1, _CELLS // max(1, self.runs))
        for first in range(0, self.series, at_once):
            yield from self._alarms(slice(first, first + at_once), lengths, least)

    def _alarms(self, rows: slice, lengths: Sequence[tuple[int, int]], least: float) -> Iterator[Alarms]:
        """Yield those of some series. Few splits differ enough for the bound, which takes no variances."""
        enough = [(before, after) for before, after in lengths if after >= _LEAST_AFTER]
        befores = {before: self._means_before(rows, before) for before in {before for before, _ in enough}}
        afters = {after: self._means_after(rows, after) for after in {after for _, after in enough}}
        for before, after in enough:
            of_after = afters[after]
            differences = np.abs(of_after - befores[before][:, : of_after.shape[1]])
            series, which = cells_with(differences >= self._bound(rows, before, after, least)[:, None])
            if len(series):
                series, places = series + rows.start, Windows.of(before, after, self.runs).taken(which)
                evidence = self._evidence(series, places, 1.0)
                yield Alarms(series, evidence, *places).taken(np.flatnonzero(evidence > least))

    def _means_before(self, rows: slice, before: int) -> Floats:
        """Of each series the mean of so many runs before each split."""
        splits = np.arange(LEAST_BEFORE, self.runs + 1)
        return self._means(rows, np.maximum(splits - before, 0), splits)

    def _means_after(self, rows: slice, after: int) -> Floats:
        splits = np.arange(LEAST_BEFORE, self.runs - after + 1)
        return self._means(rows, splits, splits + after)

    def _means(self, rows: slice, begins: Integers, ends: Integers) -> Floats:
        total, n = (values[rows][:, ends] - values[rows][:, begins] for values in (self._sum, self._n))
        means: Floats = total / np.maximum(n, 1)
        return means

    def _bound(self, rows: slice, before: int, after: int, least: float) -> Floats:
        """Return what the means of two windows of each series differ by where there is enough evidence, or less.

        The tail of z is at most z^2 / 2 + log(max(z, 1) sqrt(2 pi)), and z at most Student's t (Wallace 1959); its
        variance is at least that of the floor, its windows at most so long.
        """
        least_square = max(0.0, 2 * least - np.log(4 * np.pi * least))
        of_floor = self._floor[rows] * np.sqrt(least_square * (1 / before + 1 / after))
        bound: Floats = np.maximum(of_floor, self._least) * (1 - _ROUNDING)
        return bound

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        place = Windows(np.array([start]), np.array([split]), np.array([end]))
        return float(self._evidence(np.array([series]), place, self._inflation(series, start, split, end))[0])

    def _inflation(self, series: int, start: int, split: int, end: int) -> float:
        """By how much the variance of a mean is larger because a run is like the one before it (lag-1)."""
        first, last = max(((start, split), (split, end)), key=lambda bounds: bounds[1] - bounds[0])
        values = self._values[series, first:last]
        values = values[np.isfinite(values)]
        if len(values) < 2 * LEAST_BEFORE:
            return 1.0
        rest = values - values.mean()
        power = float(rest @ rest)
        likeness = float(rest[1:] @ rest[:-1]) / power if power else 0.0
        likeness = min(0.8, max(0.0, likeness - 1 / np.sqrt(len(values))))
        return float((1 + likeness) / (1 - likeness))

    def _evidence(self, series: Integers, places: Windows, inflation: float) -> Floats:
        """Of each series at its place."""
        starts, splits, ends = places
        n_before, n_after, of_before, of_after, squares = (
            values[series, to] - values[series, begin]
            for values, begin, to in (
                (self._n, starts, splits),
                (self._n, splits, ends),
                (self._sum, starts, splits),
                (self._sum, splits, ends),
                (self._squares, starts, ends),
            )
        )
        enough = (n_before >= LEAST_BEFORE - 2) & (n_after >= _LEAST_AFTER)
        m, n = np.maximum(n_before, 1), np.maximum(n_after, 1)
        difference = of_after / n - of_before / m
        freedom = np.maximum(n_before + n_after - 2, 1)
        within = np.maximum(squares - of_before**2 / m - of_after**2 / n, 0.0) / freedom
        variance = np.maximum(within, self._floor[series] ** 2) * inflation
        squared = difference**2 / np.maximum(variance * (1 / m + 1 / n), 1e-300)
        z = (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(squared / freedom))
        tail = z**2 / 2 + np.log(np.maximum(z, 1.0) * np.sqrt(2 * np.pi))
        return np.where(enough & (np.abs(difference) >= self._least), tail, 0.0)

    def likelihoods(self, series: int, start: int, end: int) -> Floats:
        n, total = (values[series, start : end + 1] - values[series, start] for values in (self._n, self._sum))
        m, part = n[1:-1], total[1:-1]
        gain: Floats = part**2 / np.maximum(m, 1) + (total[-1] - part) ** 2 / np.maximum(n[-1] - m, 1)
        return gain

    def level(self, series: int, start: int, end: int) -> float:
        n, total = (values[series, end] - values[series, start] for values in (self._n, self._sum))
        return float(total / max(n, 1.0) + self._centres[series])

    def ramps(self, series: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        values, weights = self._values[series, start:end], self._known[series, start:end].astype(np.float64)
        values = np.where(weights > 0, values, 0.0)
        low, high = two_levels(values, weights, shapes)
        rest = (values - low[:, None] - (high - low)[:, None] * shapes) ** 2 @ weights
        likelihoods = -weights.sum() / 2 * np.log(np.maximum(rest, 1e-12))
        return likelihoods, low + self._centres[series], high + self._centres[series]


def _medians(values: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Of what is known in each row; 0 where nothing is."""
    whole = known.all(axis=1)
    medians = np.zeros(len(values))
    if values.shape[1]:
        medians[whole] = np.median(values[whole], axis=1)
    for row in np.flatnonzero(~whole & known.any(axis=1)).tolist():
        medians[row] = np.median(values[row, known[row]])
    return medians


def _spreads_of_differences(values: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Return the standard deviation of a run in each row, from the differences of neighbours, which no change of level
    can raise; 1 where there are none.
    """
    whole, several = known.all(axis=1), known.sum(axis=1) > 1
    medians = np.zeros(len(values))
    if values.shape[1] > 1:
        medians[whole] = np.median(np.abs(np.diff(values[whole], axis=1)), axis=1)
    for row in np.flatnonzero(several & ~whole).tolist():
        medians[row] = np.median(np.abs(np.diff(values[row, known[row]])))
    return np.where(several, np.maximum(1e-6, medians / (0.6745 * np.sqrt(2))), 1.0)
