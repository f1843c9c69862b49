"""Series of numbers over runs: what is asked of them to find the runs with which they change."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_BEFORE: Final = 8
"""Runs that a series has to have before a change in it can be seen."""


class Windows(NamedTuple):
    """Where series are split: a window of runs from `starts` to `splits`, and one from there to `ends`."""

    starts: Integers
    splits: Integers
    ends: Integers

    @classmethod
    def of(cls, before: int, after: int, runs: int) -> "Windows":
        """Return every split with windows of so many runs; at the beginning of the history the first is shorter."""
        ends = np.arange(LEAST_BEFORE + after, runs + 1)
        return cls(np.maximum(ends - after - before, 0), ends - after, ends)

    def taken(self, which: Integers | slice) -> "Windows":
        """Return some of them."""
        return Windows(*(place[which] for place in self))


class Alarms(NamedTuple):
    """Splits with enough evidence, each an entry of every array."""

    series: Integers
    evidence: Floats
    starts: Integers
    splits: Integers
    ends: Integers

    def taken(self, which: Integers) -> "Alarms":
        """Return some of them."""
        places = Windows(self.starts, self.splits, self.ends).taken(which)
        return Alarms(self.series[which], self.evidence[which], *places)


class Family(Protocol):
    """Series of one kind over the same runs."""

    @property
    def series(self) -> int:
        """Return how many series there are."""

    @property
    def runs(self) -> int:
        """Return how many runs there are."""

    def alarms(self, lengths: Sequence[tuple[int, int]], least: float) -> Iterable[Alarms]:
        """Return the splits of all series, with windows of these lengths before and after, that have more evidence than
        `least` (see `ChangePoint.evidence`).
        """

    def confirmed(self, series: int, start: int, split: int, end: int) -> float:
        """Return the evidence of one split, with what the whole series says of its noise."""

    def likelihoods(self, series: int, start: int, end: int) -> Floats:
        """Return the logarithm of the likelihood of each split of a series between two runs, the ends excluded."""

    def level(self, series: int, start: int, end: int) -> float:
        """Return what the series is between two runs."""

    def ramps(self, series: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log-likelihood of each shape (numbers from 0, before, to 1, after) and its two levels."""


def cells_with(matrix: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the rows and columns of what is true: `np.nonzero`, which takes much longer where nearly nothing is."""
    rows, columns = np.divmod(np.flatnonzero(matrix), max(1, matrix.shape[1]))
    return rows, columns


def two_levels(values: Floats, weights: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """Return the levels before and after of each shape that fit the values best (weighted least squares)."""
    total, mass = weights.sum(), weights @ values
    once, twice, cross = shapes @ weights, shapes**2 @ weights, shapes @ (weights * values)
    determinant = np.maximum(total * twice - once**2, 1e-12)
    slope = (total * cross - once * mass) / determinant
    low = (mass - slope * once) / max(total, 1e-12)
    return low, low + slope
