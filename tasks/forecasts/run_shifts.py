"""By how much whole runs differ: a shift of the pass rate of all tasks of a run, drawn anew for each run.

A shift is normal; a shifted rate stays between 0 and 1. The spread is the likeliest one, by the runs of the baseline.
It counts only where it is `LEAST_RATIO` times likelier than none. In a healthy history some spread is nearly always a
little likelier than none, and a forecast with it has many more false failures than the gate.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST_RATIO: Final = 150.0
_SPREADS: Final = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1, 0.125, 0.15, 0.2)
_NODES: Final = 7  # Of the normal distribution
_NEAREST: Final = 1e-4  # No rate is nearer to 0 or 1: a task that never failed may fail
_HALVINGS: Final = 40


class Told(NamedTuple):
    """A task: its pass rate, and of each run its trials that passed and those that were measured."""

    rate: float
    counts: Mapping[str, tuple[int, int]]


class Shifts(NamedTuple):
    """What is added to the pass rates of a run's tasks, and how likely that is."""

    values: tuple[float, ...]
    weights: tuple[float, ...]

    def rates(self, rate: float) -> list[float]:
        """The rate of a task in runs of each shift; their mean is the given one."""
        if len(self.values) == 1:
            return [rate]
        found: list[float] = np.clip(self.centre(rate) + np.array(self.values), 0, 1).tolist()
        return found

    def centre(self, rate: float) -> float:
        """What the shifts are added to, so that the mean is the given rate after the cut at 0 and 1."""
        return _centre(self, rate) if len(self.values) > 1 else rate


NO_SHIFT: Final = Shifts((0.0,), (1.0,))


@lru_cache(maxsize=64)
def shifts_of(spread: float) -> Shifts:
    """The shifts of runs that differ so much, by Gauss-Hermite quadrature."""
    if not spread:
        return NO_SHIFT
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return Shifts(tuple((nodes * spread).tolist()), tuple((weights / weights.sum()).tolist()))


@lru_cache(maxsize=16_384)
def _centre(shifts: Shifts, rate: float) -> float:
    values, weights = np.array(shifts.values), np.array(shifts.weights)
    low, high = float(values.min()), float(1 + values.max())
    # What is cut off at 0 and 1 moves the mean, so the rate before the cut is another one.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if weights @ np.clip(middle + values, 0, 1) < rate else (low, middle)
    return high


def spread_of(tasks: Iterable[Told]) -> float:
    """The standard deviation of the shifts of runs that these tasks show; 0 where that may be chance."""
    told = [one for one in tasks if one.counts]
    runs = sorted({run for one in told for run in one.counts})
    if len(runs) < 2:
        return 0.0
    none = _likelihood(told, runs, NO_SHIFT)
    ratios = [(_likelihood(told, runs, shifts_of(spread)) - none, spread) for spread in _SPREADS]
    best, spread = max(ratios)
    return spread if best >= np.log(LEAST_RATIO) else 0.0


def _likelihood(told: Sequence[Told], runs: Sequence[str], shifts: Shifts) -> float:
    """The logarithm of the likelihood of the runs' counts, up to a constant that all shifts share."""
    counts = np.array([[one.counts.get(run, (0, 0)) for run in runs] for one in told], dtype=float)
    passed, n = counts[..., 0], counts[..., 1]
    rates = np.clip([shifts.rates(one.rate) for one in told], _NEAREST, 1 - _NEAREST)
    by_shift = np.log(rates).T @ passed + np.log1p(-rates).T @ (n - passed)
    largest = by_shift.max(axis=0)
    of_runs = largest + np.log(np.array(shifts.weights) @ np.exp(by_shift - largest))
    return float(of_runs.sum())
