"""By how much whole runs differ: a shift of the pass rate of all tasks of a run, drawn anew for each run.

A shift is normal; a shifted rate stays between 0 and 1. The spread is the likeliest one, by the runs of the baseline.
It counts only where it is `LEAST_RATIO` times likelier than none. In a healthy history some spread is nearly always a
little likelier than none, and a forecast with it has many more false failures than the gate.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

LEAST_RATIO: Final = 150.0
_SPREADS: Final = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1, 0.125, 0.15, 0.2)
_NEAREST: Final = 1e-4  # No rate is nearer to 0 or 1: a task that never failed may fail
_HALVINGS: Final = 40
_QUANTILES: Final = np.array([NormalDist().inv_cdf((place + 0.5) / 200) for place in range(200)])


class RunCounts(NamedTuple):
    """A task: its pass rate, and of each run its trials that passed and those that were measured."""

    rate: float
    counts: Mapping[str, tuple[int, int]]


@lru_cache(maxsize=16_384)
def centre(rate: float, spread: float) -> float:
    """Return what shifts are added to, so that the mean is the given rate after the cut at 0 and 1."""
    low, high = float(spread * _QUANTILES[0]), float(1 + spread * _QUANTILES[-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle + spread * _QUANTILES, 0, 1).mean() < rate else (low, middle)
    return high


def spread_of(tasks: Iterable[RunCounts]) -> float:
    """Return the standard deviation of the shifts of runs that these tasks show; 0 where that may be chance."""
    known = [one for one in tasks if one.counts]
    runs = sorted({run for one in known for run in one.counts})
    if len(runs) < 2:
        return 0.0
    none = _likelihood(known, runs, 0.0)
    best, spread = max((_likelihood(known, runs, spread) - none, spread) for spread in _SPREADS)
    return spread if best >= np.log(LEAST_RATIO) else 0.0


def _likelihood(tasks: Sequence[RunCounts], runs: Sequence[str], spread: float) -> float:
    """Return the logarithm of the likelihood of the runs' counts, up to a constant that all spreads share."""
    counts = np.array([[one.counts.get(run, (0, 0)) for run in runs] for one in tasks], dtype=float)
    passed, n = counts[..., 0], counts[..., 1]
    centres = np.array([centre(one.rate, spread) if spread else one.rate for one in tasks])
    rates = np.clip(centres[:, None] + spread * _QUANTILES, _NEAREST, 1 - _NEAREST)
    by_shift = np.log(rates).T @ passed + np.log1p(-rates).T @ (n - passed)
    largest = by_shift.max(axis=0)
    return float((largest + np.log(np.exp(by_shift - largest).mean(axis=0))).sum())
