"""Scores of trials: their weighted mean and what their mean can be trusted for."""

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean, stdev

_ONE_SIDE = 0.975
"""The interval holds 95 %."""


def weighted_mean(scores: Sequence[float], weights: Sequence[float]) -> float | None:
    """The sum of score x weight over the sum of the weights; `None` when that is 0: then nothing is said."""
    total = math.fsum(weights)
    return math.fsum(score * weight for score, weight in zip(scores, weights, strict=True)) / total if total else None


def mean_lower_bound(scores: Sequence[float]) -> float:
    """The lower end of the 95 % interval of a mean, by Student's t: mean - t s / sqrt(n), not below 0.

    The mean itself where all scores are the same. Raises `ValueError` for fewer than two scores.
    """
    if len(scores) < 2:
        raise ValueError("an interval needs at least two scores")
    half = student_t(len(scores) - 1, _ONE_SIDE) * stdev(scores) / math.sqrt(len(scores))
    return max(0.0, fmean(scores) - half)


@cache
def student_t(degrees: int, probability: float) -> float:
    """The quantile of Student's t with so many degrees of freedom, from 1, of a probability from 0.5 to 0.975."""
    low, high = 0.0, 13.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_t_share(middle, degrees) < probability else (low, middle)
    return high


def _student_t_share(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0, by the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for index in range(degrees // 2):
        total += term
        term *= square * (2 * index + 1 + odd) / (2 * index + 2 + odd)
    both_sides = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + both_sides / 2
