"""Series of numbers over runs, and how unlike two windows of each are: counts of passes, and levels."""

from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST_BEFORE: Final = 8
"""Runs that a series has to have before a change in it can be seen."""


class Windows(NamedTuple):
    """Where all series are split at once: every run at which both windows are within the history."""

    starts: npt.NDArray[np.int64]
    splits: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class Family(Protocol):
    """Series of one kind over the same runs."""

    least_after: int

    @property
    def series(self) -> int:
        """How many series there are."""

    @property
    def runs(self) -> int:
        """How many runs there are."""

    def evidence(self, places: Windows) -> Floats:
        """For each series and place, how far the two windows are from alike (see `ChangePoint.evidence`)."""

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        """The evidence of one split, with what the whole series says of its noise."""

    def likelihoods(self, series: int, start: int, end: int) -> Floats:
        """The logarithm of the likelihood of each split of a series between two runs, the ends excluded."""

    def level(self, series: int, start: int, end: int) -> float:
        """What the series is between two runs."""

    def ramps(self, series: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        """The log-likelihood of each shape, a row of numbers from 0 (before) to 1 (after), and its two levels."""


class PassCounts:
    """How many of a run's trials passed: a series per task, then a series per group of tasks.

    A window is compared with what its tasks' trials of both windows let expect. Given how many passed in all, the
    passes of a window are a sum of independent chances (Vatutin and Mikhailov 1982), so that it differs so much with a
    chance of at most exp(-n KL(share, expected)) (Hoeffding 1963), whatever the tasks' pass rates are.
    """

    least_after = 1

    def __init__(self, passed: Floats, n: Floats, groups: Floats) -> None:
        """`passed` and `n` have a row per task and a column per run; `groups` a row per group with 1 for its tasks."""
        self._members = np.vstack([np.eye(len(passed)), groups]) if len(groups) else np.eye(len(passed))
        self._groups = np.asarray(groups, dtype=np.float64).reshape(-1, len(passed))
        zeros = np.zeros((len(passed), 1))
        self._passed = np.hstack([zeros, np.cumsum(passed, axis=1)])
        self._n = np.hstack([zeros, np.cumsum(n, axis=1)])

    @property
    def series(self) -> int:
        return len(self._members)

    @property
    def runs(self) -> int:
        return int(self._n.shape[1]) - 1

    def evidence(self, places: Windows) -> Floats:
        return self._evidence(places, np.arange(len(self._n)), self._groups)

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        tasks = np.flatnonzero(self._members[series])
        place = Windows(np.array([start]), np.array([split]), np.array([end]))
        return float(self._evidence(place, tasks, np.ones((1, len(tasks))))[-1, 0])

    def _evidence(self, places: Windows, tasks: npt.NDArray[np.int64], groups: Floats) -> Floats:
        starts, splits, ends = places
        passed, n = self._passed[tasks], self._n[tasks]
        n_before, n_after = n[:, splits] - n[:, starts], n[:, ends] - n[:, splits]
        x_before, x_after = passed[:, splits] - passed[:, starts], passed[:, ends] - passed[:, splits]
        total, hits = n_before + n_after, x_before + x_after
        # A task that always passed or always failed, or has but one window, could not have come out otherwise.
        open_ = (hits > 0) & (hits < total) & (n_before > 0) & (n_after > 0)
        share = hits / np.maximum(total, 1)
        members = [_as_slice(np.flatnonzero(group)) for group in groups]
        sides = []
        for size, got in ((n_before, x_before), (n_after, x_after)):
            parts = [np.where(open_, part, 0.0) for part in (size, got, size * share)]
            # Not a product of matrices, which keeps every core busy for a few sums.
            sums = [np.array([part[rows].sum(axis=0) for rows in members]) for part in parts]
            of_tasks = _divergence(*parts)
            sides.append(np.vstack([of_tasks, _divergence(*sums)]) if members else of_tasks)
        larger: Floats = np.maximum(*sides)
        return larger

    def likelihoods(self, series: int, start: int, end: int) -> Floats:
        tasks = np.flatnonzero(self._members[series])
        passed, n = (values[tasks, start : end + 1] - values[tasks, start, None] for values in (self._passed, self._n))
        x, m = passed[:, 1:-1], n[:, 1:-1]
        both: Floats = _likelihood(x, m) + _likelihood(passed[:, -1:] - x, n[:, -1:] - m)
        return np.asarray(both.sum(axis=0))

    def level(self, series: int, start: int, end: int) -> float:
        passed, n = self._between(series, start, end)
        return float(passed.sum() / max(1.0, n.sum()))

    def _between(self, series: int, start: int, end: int) -> tuple[Floats, Floats]:
        """The passed and the measured trials of each run of a series."""
        tasks = np.flatnonzero(self._members[series])
        passed, n = (np.diff(values[tasks, start : end + 1], axis=1).sum(axis=0) for values in (self._passed, self._n))
        return passed, n

    def ramps(self, series: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        passed, n = self._between(series, start, end)
        low, high = _two_levels(passed / np.maximum(n, 1), n, shapes)
        low, high = np.clip(low, 0.002, 0.998), np.clip(high, 0.002, 0.998)
        rates = low[:, None] + (high - low)[:, None] * shapes
        return (passed * np.log(rates) + (n - passed) * np.log1p(-rates)).sum(axis=1), low, high


class Levels:
    """Numbers, such as logarithms of seconds: a series per row and a run per column, NaN where nothing was measured.

    Two windows are compared by Student's t, whose tail is that of a normal one (Wallace 1959).
    """

    least_after = 3

    def __init__(self, values: Floats, least: float) -> None:
        """`least` is the smallest difference that is a change."""
        centres = [np.nanmedian(row) if np.isfinite(row).any() else 0.0 for row in values]
        self._centres = np.array(centres)
        self._values = values - self._centres[:, None]
        self._least = least
        zeros, known = np.zeros((len(values), 1)), np.isfinite(values)
        filled = np.where(known, self._values, 0.0)
        self._known = known
        self._n = np.hstack([zeros, np.cumsum(known, axis=1)])
        self._sum = np.hstack([zeros, np.cumsum(filled, axis=1)])
        self._squares = np.hstack([zeros, np.cumsum(filled**2, axis=1)])
        self._floor = np.array([_spread_of_differences(row[np.isfinite(row)]) for row in self._values]) / 2

    @property
    def series(self) -> int:
        return len(self._values)

    @property
    def runs(self) -> int:
        return int(self._values.shape[1])

    def evidence(self, places: Windows) -> Floats:
        return self._evidence(places, slice(None), 1.0)

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        row, place = slice(series, series + 1), Windows(np.array([start]), np.array([split]), np.array([end]))
        return float(self._evidence(place, row, self._inflation(series, start, split, end))[0, 0])

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

    def _evidence(self, places: Windows, rows: slice, inflation: float) -> Floats:
        starts, splits, ends = places
        n_before, n_after, of_before, of_after, squares = (
            values[rows][:, to] - values[rows][:, begin]
            for values, begin, to in (
                (self._n, starts, splits),
                (self._n, splits, ends),
                (self._sum, starts, splits),
                (self._sum, splits, ends),
                (self._squares, starts, ends),
            )
        )
        enough = (n_before >= LEAST_BEFORE - 2) & (n_after >= self.least_after)
        m, n = np.maximum(n_before, 1), np.maximum(n_after, 1)
        difference = of_after / n - of_before / m
        freedom = np.maximum(n_before + n_after - 2, 1)
        within = np.maximum(squares - of_before**2 / m - of_after**2 / n, 0.0) / freedom
        variance = np.maximum(within, self._floor[rows, None] ** 2) * inflation
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
        low, high = _two_levels(values, weights, shapes)
        rest = (values - low[:, None] - (high - low)[:, None] * shapes) ** 2 @ weights
        likelihoods = -weights.sum() / 2 * np.log(np.maximum(rest, 1e-12))
        return likelihoods, low + self._centres[series], high + self._centres[series]


def _as_slice(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
    """Rows that lie together as a slice, which copies nothing."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _divergence(n: Floats, got: Floats, expected: Floats) -> Floats:
    """n KL(got / n, expected / n)."""
    missed, unexpected = n - got, n - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(got > 0, got * np.log(got / expected), 0.0)
        misses = np.where(missed > 0, missed * np.log(missed / unexpected), 0.0)
    result: Floats = np.maximum(hits + misses, 0.0)
    return result


def _likelihood(passed: Floats, n: Floats) -> Floats:
    """The logarithm of the likelihood of passes at their own rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(passed > 0, passed * np.log(passed / n), 0.0)
        misses = np.where(n > passed, (n - passed) * np.log1p(-passed / n), 0.0)
    result: Floats = hits + misses
    return result


def _two_levels(values: Floats, weights: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """The levels before and after of each shape that fit the values best (weighted least squares)."""
    total, mass = weights.sum(), weights @ values
    once, twice, cross = shapes @ weights, shapes**2 @ weights, shapes @ (weights * values)
    determinant = np.maximum(total * twice - once**2, 1e-12)
    slope = (total * cross - once * mass) / determinant
    low = (mass - slope * once) / max(total, 1e-12)
    return low, low + slope


def _spread_of_differences(values: Floats) -> float:
    """The standard deviation of a run, from the differences of neighbours, which no change of level can raise."""
    if len(values) < 2:
        return 1.0
    return max(1e-6, float(np.median(np.abs(np.diff(values))) / (0.6745 * np.sqrt(2))))
