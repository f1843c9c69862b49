"""Intervals: Wilson's for one task's pass rate, a bootstrap over tasks for a suite."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 4000
_SEED = 20240617


def wilson_interval(n: int, c: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The score interval of a pass rate from c passes in n trials (Wilson 1927); [0, 1] when n is 0.

    Unlike the usual normal interval it has a width at 0/n and n/n. Raises `ValueError` unless 0 <= c <= n.
    """
    if not 0 <= c <= n:
        raise ValueError("needs 0 <= c <= n")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = c / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the edges rounding may leave the rate itself outside by a hair.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


@dataclass(frozen=True)
class TaskCounts:
    """One task's trials: n measured, c passed, its k, and whether one pass is enough (pass@k)."""

    n: int
    c: int
    k: int
    any_of_k: bool


def suite_interval(tasks: Sequence[TaskCounts], estimate: float) -> tuple[float, float]:
    """A 95 % interval of a suite's value: the mean over its tasks of pass@k or pass^k.

    A bootstrap over tasks in two steps: tasks are drawn with replacement, and each drawn task's pass rate from
    what its trials leave open, Beta(c + 1/2, n - c + 1/2) (Jeffreys). The second step keeps a width where every
    trial passed, which a plain bootstrap over tasks lacks. The interval always holds the estimate. Seeded: the
    same counts give the same interval.
    """
    if not tasks:
        return 0.0, 1.0
    random = np.random.default_rng(_SEED)
    n, c, k = (np.array([getattr(task, name) for task in tasks]) for name in ("n", "c", "k"))
    any_of_k = np.array([task.any_of_k for task in tasks])
    drawn = random.integers(0, len(tasks), size=(RESAMPLES, len(tasks)))
    rates = random.beta(c[drawn] + 0.5, n[drawn] - c[drawn] + 0.5)
    values = np.where(any_of_k[drawn], 1 - (1 - rates) ** k[drawn], rates ** k[drawn])
    low, high = _middle(values.mean(axis=1))
    return min(low, estimate), max(high, estimate)


def _middle(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
