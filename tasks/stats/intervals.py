"""Wilson's interval: of one task's pass rate over its trials, and of a suite's value over its tasks."""

from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95


def wilson_interval(n: int, c: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The score interval of a pass rate from c passes in n trials (Wilson 1927); [0, 1] when n is 0.

    Unlike the usual normal interval it has a width at 0/n and n/n. Raises `ValueError` unless 0 <= c <= n.
    """
    if not 0 <= c <= n:
        raise ValueError("needs 0 <= c <= n")
    return _score_interval(c / n if n else 0.0, n, confidence)


def suite_interval(value: float, tasks: int) -> tuple[float, float]:
    """A 95 % interval of a suite's value: the mean over its tasks of pass@k or pass^k.

    Wilson's interval with the tasks as its sample. A task of k trials has the value 0 or 1, for which it is made;
    values between vary less than those of the same mean, so with them it is on the safe side. Raises `ValueError`
    unless 0 <= value <= 1.
    """
    if not 0 <= value <= 1:
        raise ValueError("needs 0 <= value <= 1")
    return _score_interval(value, tasks, CONFIDENCE)


def _score_interval(rate: float, n: int, confidence: float) -> tuple[float, float]:
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the edges rounding may leave the rate itself outside by a hair.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))
