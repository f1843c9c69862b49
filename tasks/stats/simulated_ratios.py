"""How often the paired comparison of latency or cost is red when nothing has changed, by simulation."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.comparisons import LEAST_PAIRS, LEAST_RUNS, margin

Floats = npt.NDArray[np.float64]


class Pair(NamedTuple):
    """One task that is compared with its baseline."""

    before: int
    """Its figures at the baseline."""
    now: int
    """Those to come."""
    spread: float | None
    """Standard deviation of their logarithms within a run; where it is not known that of the other tasks is taken."""


def simulated_bounds(
    pairs: Sequence[Pair], gates: int, seed: int, *, drift: float = 0.0, runs: int = LEAST_RUNS
) -> Floats | None:
    """The lower bounds of the paired ratio (`paired_ratio`) in so many gates whose agent has not changed.

    Figures vary lognormally, by the spread of their task and by the drift of the whole run. The baseline, of so many
    `runs`, is drawn anew for each gate, and with it the drift as a gate would measure it. `None` with fewer than eight
    pairs or two runs, which are not compared, and where no spread is known.
    """
    known = [pair.spread for pair in pairs if pair.spread is not None]
    if len(pairs) < LEAST_PAIRS or runs < LEAST_RUNS or not known:
        return None
    spreads = [fmean(known) if pair.spread is None else pair.spread for pair in pairs]
    draws = np.random.default_rng(seed)
    total, squares = np.zeros(gates), np.zeros(gates)
    for pair, spread in zip(pairs, spreads, strict=True):
        change = draws.normal(0.0, spread * math.sqrt(1 / pair.now + 1 / pair.before), gates)
        total += change
        squares += change**2
    count = len(pairs)
    mean = total / count
    of_tasks = np.maximum(squares - count * mean**2, 0.0) / (count - 1)
    shift = draws.normal(0.0, drift * math.sqrt(1 + 1 / runs), gates)
    # Of the means of whole runs a part of the variance is what the spreads leave in them, and is taken off again.
    left = sum(spread**2 * runs / pair.before for pair, spread in zip(pairs, spreads, strict=True)) / count**2
    of_runs = np.maximum((drift**2 + left) * draws.chisquare(runs - 1, gates) / (runs - 1) - left, 0.0)
    margins = [margin(task, count, run, runs) for task, run in zip(of_tasks.tolist(), of_runs.tolist(), strict=True)]
    bounds: Floats = np.exp(mean + shift - np.array(margins))
    return bounds
