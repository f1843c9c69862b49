"""How many trials of tasks passed, run by run: series of counts."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.change_series import Alarms, Floats, Integers, Windows, cells_with, two_levels

_CELLS: Final = 1 << 16
"""Tasks times places that are looked at together: their numbers stay in a processor's cache."""
_ROUNDING: Final = 1e-9


class _Sides(NamedTuple):
    """Two windows of tasks, and what both let expect of the first."""

    n_before: Floats
    n_after: Floats
    x_before: Floats
    x: Floats
    """Of both windows."""
    share: Floats
    expected_before: Floats

    @property
    def is_open(self) -> npt.NDArray[np.bool_]:
        """Return which tasks could have come out otherwise: not those that always passed or always failed, or have but
        one window.
        """
        return (self.x > 0) & (self.x < self.n_before + self.n_after) & (self.n_before > 0) & (self.n_after > 0)

    def taken(self, places: Integers, tasks: Integers) -> "_Sides":
        """Return a place and a task for each entry."""
        return _Sides(*(values[places, tasks] for values in self))

    @property
    def evidence(self) -> Floats:
        """Return how far the windows of each task are from alike."""
        x_after, expected_after = self.x - self.x_before, self.n_after * self.share
        before = _divergence(self.n_before, self.x_before, self.expected_before)
        larger = np.maximum(before, _divergence(self.n_after, x_after, expected_after))
        return np.where(self.is_open, larger, 0.0)

    @property
    def evidence_of_sum(self) -> Floats:
        """Return how far the windows of all tasks together are from alike, at each place."""
        x_after, expected_after = self.x - self.x_before, self.n_after * self.share
        parts = (self.n_before, self.x_before, self.expected_before, self.n_after, x_after, expected_after)
        sums = [np.where(self.is_open, part, 0.0).sum(axis=1) for part in parts]
        return np.maximum(_divergence(*sums[:3]), _divergence(*sums[3:]))


class PassCounts:
    """How many of a run's trials passed: a series per task, then a series per group of tasks.

    A window is compared with what its tasks' trials of both windows let expect. Given how many passed in all, the
    passes of a window are a sum of independent chances (Vatutin and Mikhailov 1982), so that it differs so much with a
    chance of at most exp(-n KL(share, expected)) (Hoeffding 1963), whatever the tasks' pass rates are.
    """

    def __init__(self, passed: Floats, n: Floats, groups: Floats) -> None:
        """Take `passed` and `n` with a row per task and a column per run; `groups` has 1 for the tasks of a group."""
        self._tasks = len(passed)
        self._groups = [_as_slice(np.flatnonzero(group)) for group in groups]
        self._passed, self._n = _sums(passed), _sums(n)

    @property
    def series(self) -> int:
        return self._tasks + len(self._groups)

    @property
    def runs(self) -> int:
        return len(self._n) - 1

    def alarms(self, lengths: Sequence[tuple[int, int]], least: float) -> Iterator[Alarms]:
        at_once = max(1, _CELLS // max(1, self._tasks))
        for before, after in lengths:
            places = Windows.of(before, after, self.runs)
            for first in range(0, len(places.splits), at_once):
                yield from self._alarms(places.taken(slice(first, first + at_once)), least)

    def _alarms(self, places: Windows, least: float) -> Iterator[Alarms]:
        """Yield those of some places. Nearly none differ enough for the bound, which takes no logarithms: n KL(p, q) is
        at most n (p - q)^2 / (q (1 - q)), and for tasks together n q (1 - q) is at least the sum of theirs (Jensen).
        """
        sides = self._sides(places)
        difference = sides.x_before - sides.expected_before
        spread = (1 - sides.share) * sides.share * np.minimum(sides.n_before, sides.n_after)
        of_places, tasks = cells_with(_may_exceed(least, difference, spread))
        if len(tasks):
            yield _above(least, tasks, sides.taken(of_places, tasks).evidence, places.taken(of_places))
        for number, group in enumerate(self._groups, self._tasks):
            sums = (values[:, group].sum(axis=1) for values in (difference, spread))
            some = places.taken(np.flatnonzero(_may_exceed(least, *sums)))
            if len(some.splits):
                evidence = self._sides(some, group).evidence_of_sum
                yield _above(least, np.full(len(evidence), number), evidence, some)

    def _sides(self, places: Windows, tasks: Integers | slice = slice(None)) -> _Sides:
        starts, splits, ends = places
        passed, n = self._passed[:, tasks], self._n[:, tasks]
        n_before, n_after = _between(n, starts, splits), _between(n, splits, ends)
        x_before, x = _between(passed, starts, splits), _between(passed, starts, ends)
        share = x / np.maximum(n_before + n_after, 1)
        return _Sides(n_before, n_after, x_before, x, share, n_before * share)

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        place = Windows(np.array([start]), np.array([split]), np.array([end]))
        return float(self._sides(place, self._members(series)).evidence_of_sum[0])

    def _members(self, series: int) -> Integers | slice:
        """Return the tasks of a series."""
        return slice(series, series + 1) if series < self._tasks else self._groups[series - self._tasks]

    def likelihoods(self, series: int, start: int, end: int) -> Floats:
        passed, n = self._within(series, start, end)
        x, m = passed[:, 1:-1], n[:, 1:-1]
        both: Floats = _likelihood(x, m) + _likelihood(passed[:, -1:] - x, n[:, -1:] - m)
        return np.asarray(both.sum(axis=0))

    def _within(self, series: int, start: int, end: int) -> tuple[Floats, Floats]:
        """Return the passed and the measured trials of each task of a series from a run on: before it, and after each
        run.
        """
        tasks = self._members(series)
        of_tasks = (values[start : end + 1, tasks].T for values in (self._passed, self._n))
        passed, n = (np.ascontiguousarray(values) - values[:, :1] for values in of_tasks)
        return passed, n

    def level(self, series: int, start: int, end: int) -> float:
        passed, n = self._between(series, start, end)
        return float(passed.sum() / max(1.0, n.sum()))

    def _between(self, series: int, start: int, end: int) -> tuple[Floats, Floats]:
        """Return the passed and the measured trials of each run of a series."""
        passed, n = (np.diff(values, axis=1).sum(axis=0) for values in self._within(series, start, end))
        return passed, n

    def ramps(self, series: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        passed, n = self._between(series, start, end)
        low, high = two_levels(passed / np.maximum(n, 1), n, shapes)
        low, high = np.clip(low, 0.002, 0.998), np.clip(high, 0.002, 0.998)
        rates = low[:, None] + (high - low)[:, None] * shapes
        return (passed * np.log(rates) + (n - passed) * np.log1p(-rates)).sum(axis=1), low, high


def _above(least: float, series: Integers, evidence: Floats, places: Windows) -> Alarms:
    """Return those that have more evidence."""
    return Alarms(series, evidence, *places).taken(np.flatnonzero(evidence > least))


def _sums(counts: Floats) -> Floats:
    """Return a row for each run: the counts of the runs before it. The tasks of a run lie together in memory."""
    sums = np.zeros((counts.shape[1] + 1, len(counts)))
    np.cumsum(counts.T, axis=0, out=sums[1:])
    return sums


def _may_exceed(least: float, difference: Floats, spread: Floats) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = difference * difference > spread * (least * (1 - _ROUNDING)) + _ROUNDING
    return found


def _between(sums: Floats, begins: Integers, ends: Integers) -> Floats:
    """Return a row for each pair of runs: what lies between them."""
    result: Floats = sums[_as_slice(ends)] - sums[_as_slice(begins)]
    return result


def _as_slice(rows: Integers) -> Integers | slice:
    """Return rows that lie together as a slice, which copies nothing."""
    if len(rows) and bool((np.diff(rows) == 1).all()):
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
    """Return the logarithm of the likelihood of passes at their own rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(passed > 0, passed * np.log(passed / n), 0.0)
        misses = np.where(n > passed, (n - passed) * np.log1p(-passed / n), 0.0)
    result: Floats = hits + misses
    return result
