"""The binomial distribution, exactly."""

from math import comb


def binomial(n: int, rate: float) -> list[float]:
    """The chance of each number from 0 to n of successes in n independent trials of a rate."""
    return [comb(n, hits) * rate**hits * (1 - rate) ** (n - hits) for hits in range(n + 1)]
