"""Estimators and intervals of pass rates and of scores: pass@k, pass^k, Wilson, Student, empirical Bayes."""

import math
from collections.abc import Sequence
from math import comb, exp, lgamma, sqrt
from statistics import NormalDist, fmean, stdev

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64] | list[int] | int
Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.95


def binomial(n: int, rate: float) -> list[float]:
    """Return the chance of each number from 0 to n of successes in n independent trials of a rate."""
    return [comb(n, hits) * rate**hits * (1 - rate) ** (n - hits) for hits in range(n + 1)]


def chance_of_so_few(good: float, bad: float, n: int, passed: int) -> float:
    """Return the chance of at most so many passes in n trials, when the pass rate is drawn from a Beta distribution."""
    whole, ways = _log_beta(good, bad), lgamma(n + 1)
    return sum(
        exp(ways - lgamma(one + 1) - lgamma(n - one + 1) + _log_beta(good + one, bad + n - one) - whole)
        for one in range(passed + 1)
    )


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Return the least value that at least `percent` % of the values do not exceed; `None` of no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def pass_at_k(n: Integers, c: Integers, k: Integers) -> Floats:
    """Return the chance that at least one of k trials passes, estimated from c passes in n trials.

    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374). Arrays broadcast; NaN where n < k, because
    fewer than k trials say nothing of k trials. Raise `ValueError` unless 0 <= c <= n and k >= 1.
    """
    # C(n-c, k) / C(n, k) is the chance that all k trials fail: pass^k with the failures as passes.
    return 1.0 - pass_hat_k(n, np.subtract(n, c, dtype=np.int64), k)


def pass_hat_k(n: Integers, c: Integers, k: Integers) -> Floats:
    """Return the chance that all of k trials pass, estimated from c passes in n trials. C(c, k) / C(n, k) (Yao et al.
    2024, arXiv:2406.12045). Arrays broadcast; NaN where n < k. Raise `ValueError` unless 0 <= c <= n and k >= 1.
    """
    trials, passed, size = np.broadcast_arrays(*(np.asarray(value, dtype=np.int64) for value in (n, c, k)))
    if np.any(passed < 0) or np.any(passed > trials) or np.any(size < 1):
        raise ValueError("needs 0 <= c <= n and k >= 1")
    result = np.where(trials >= size, 1.0, np.nan)
    # Multiplied up factor by factor, so that no binomial coefficient can overflow.
    for drawn in range(int(size.max(initial=0))):
        factor = np.clip((passed - drawn) / np.maximum(trials - drawn, 1), 0.0, 1.0)
        result = np.where(drawn < size, result * factor, result)
    return result


def wilson_interval(n: int, c: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the score interval of a pass rate from c passes in n trials (Wilson 1927); [0, 1] when n is 0. Unlike the
    usual normal interval it has a width at 0/n and n/n. Raise `ValueError` unless 0 <= c <= n.
    """
    if not 0 <= c <= n:
        raise ValueError("needs 0 <= c <= n")
    return _score_interval(c / n if n else 0.0, n, confidence)


def suite_interval(value: float, tasks: int) -> tuple[float, float]:
    """Return a 95 % interval of a suite's value: the mean over its tasks of pass@k or pass^k.

    It is Wilson's interval with the tasks as its sample. That interval is made for values of 0 and 1, which tasks of
    exactly k trials have. Values in between vary less than these at the same mean, so the interval is then too wide
    rather than too narrow. Raise `ValueError` unless 0 <= value <= 1.
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
    # At 0 and 1 rounding may leave the rate itself outside by a hair.
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


def weighted_mean(scores: Sequence[float], weights: Sequence[float]) -> float | None:
    """Return the sum of score x weight over the sum of the weights; `None` when the weights sum to 0."""
    total = math.fsum(weights)
    return math.fsum(score * weight for score, weight in zip(scores, weights, strict=True)) / total if total else None


def mean_lower_bound(scores: Sequence[float]) -> float:
    """Return the lower end of the 95 % interval of a mean, by Student's t: mean - t s / sqrt(n), not below 0. The mean
    itself where all scores are the same. Raise `ValueError` for fewer than two scores.
    """
    if len(scores) < 2:
        raise ValueError("an interval needs at least two scores")
    # 0.975 on each side leaves 95 % between the two ends.
    quantile = float(student_t_quantiles(np.array(len(scores) - 1.0), 0.975))
    half = quantile * stdev(scores) / math.sqrt(len(scores))
    return max(0.0, fmean(scores) - half)


def student_t_quantiles(degrees: Floats, probability: float) -> Floats:
    """Return the quantiles of Student's t for a probability above 0.5, and for 1, 2 or any degrees of freedom from 3.
    Hill 1970, Communications of the ACM 13, algorithm 396: right to six digits. 1 and 2 degrees have closed forms.
    """
    n, both = np.maximum(degrees, 3.0), 2 * (1 - probability)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * np.sqrt(a * math.pi / 2) * n
    far = (d * both) ** (2 / n)
    normal = NormalDist().inv_cdf(both / 2)
    y = normal**2
    c = np.where(n < 5, c + 0.3 * (n - 4.5) * (normal + 0.6), c)
    c = (((0.05 * d * normal - 5) * normal - 7) * normal - 2) * normal + b + c
    near = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * normal
    near = np.expm1(a * near**2)
    tail = ((1 / (((n + 6) / (n * far) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * far - 1) * (n + 1)
    tail = tail / (n + 2) + 1 / far
    quantiles = np.sqrt(n * np.where(far > 0.05 + a, near, tail))
    within = 1 - both
    of_two, of_one = within * math.sqrt(2 / (1 - within**2)), math.tan(math.pi * within / 2)
    return np.where(degrees == 1, of_one, np.where(degrees == 2, of_two, quantiles))


def shrunk_rates(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Return the pass rate of each task from its passes and trials; for a task without trials that of all tasks
    together. c/n of a task that has never failed is 1, which is too optimistic: a gate of such tasks would never be
    red. Half a failure more for each task (Jeffreys' mean) is too pessimistic: twenty tasks that never failed in sixty
    trials would make a gate of three trials a task red 39 % of the time. So each task's rate is drawn towards the rate
    of all tasks together. The less the tasks' rates differ beyond chance, the stronger this is (empirical Bayes in the
    beta-binomial model; moments as in Kleinman 1973, JASA 68:46). The rate of all is (C + 1/2) / (N + 1) of all C
    passes in N trials: Jeffreys' mean, which is also the rate of a task that is alone. Raise `ValueError` for no trials
    at all, and unless 0 <= passed <= n.
    """
    if any(not 0 <= passed <= n for passed, n in counts):
        raise ValueError("needs 0 <= passed <= n")
    passed, n = sum(one for one, _ in counts), sum(one for _, one in counts)
    if not n:
        raise ValueError("needs trials")
    of_all = (passed + 0.5) / (n + 1)
    alike = likeness([(passed, n) for passed, n in counts if n])
    if alike == 0:
        return [of_all] * len(counts)
    strength = 1 / alike - 1  # the rate of all weighs as much as this many trials
    return [(passed + strength * of_all) / (n + strength) if n else of_all for passed, n in counts]


def likeness(counts: Sequence[tuple[int, int]]) -> float:
    """Return how alike two trials of one task are (intraclass correlation): 0 where all tasks have one rate, at most
    1/2. The expected sum of n (c/n - C/N)^2 over m tasks is pq [(m - 1) + likeness (N - sum of n^2 / N - (m - 1))].
    """
    tasks, trials = len(counts), sum(n for _, n in counts)
    rate = sum(passed for passed, _ in counts) / trials
    variance = rate * (1 - rate)
    room = trials - sum(n * n for _, n in counts) / trials - (tasks - 1)
    if variance == 0 or room <= 0:
        return 0.0
    spread = sum(n * (passed / n - rate) ** 2 for passed, n in counts)
    # At most 1/2, so that the rate of all weighs at least as much as one trial and no rate is exactly 0 or 1.
    return min(max((spread / variance - (tasks - 1)) / room, 0.0), 0.5)
