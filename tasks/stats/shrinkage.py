"""Pass rates of many tasks from a few trials of each.

c/n of a task that has never failed is 1, which is too rosy: a gate of such tasks would never be red. Half a failure
more for each (Jeffreys' mean) is too gloomy: twenty tasks that never failed in sixty trials would make a gate of three
trials a task red 39 % of the time. So each task is drawn towards the rate of all tasks together, the more the less
their rates differ beyond chance (empirical Bayes in the beta-binomial model; moments as in Kleinman 1973, JASA 68:46).
"""

from collections.abc import Sequence

_MOST_LIKENESS = 0.5
"""What all tasks say weighs as much as one trial at least: so no rate is exactly 0 or 1."""


def shrunk_rates(counts: Sequence[tuple[int, int]]) -> list[float]:
    """The pass rate of each task from its passes and trials; of a task without trials that of all together.

    The rate of all is (C + 1/2) / (N + 1) of all C passes in N trials, Jeffreys' mean, which is also that of a task
    which is alone. Raises `ValueError` for no trials at all, and unless 0 <= passed <= n.
    """
    if any(not 0 <= passed <= n for passed, n in counts):
        raise ValueError("needs 0 <= passed <= n")
    passed, n = sum(one for one, _ in counts), sum(one for _, one in counts)
    if not n:
        raise ValueError("needs trials")
    of_all = (passed + 0.5) / (n + 1)
    likeness = _likeness([(passed, n) for passed, n in counts if n])
    return [_drawn(passed, n, of_all, likeness) for passed, n in counts]


def _drawn(passed: int, n: int, of_all: float, likeness: float) -> float:
    """(c + s m) / (n + s) with a strength s of 1 / likeness - 1 trials."""
    if likeness == 0 or n == 0:
        return of_all
    strength = 1 / likeness - 1
    return (passed + strength * of_all) / (n + strength)


def _likeness(counts: Sequence[tuple[int, int]]) -> float:
    """How like two trials of a task are to each other, from 0, where all tasks have one rate, to a half.

    The expected sum of n (c/n - C/N)^2 over m tasks is pq [(m - 1) + likeness (N - sum of n^2 / N - (m - 1))].
    """
    tasks, trials = len(counts), sum(n for _, n in counts)
    rate = sum(passed for passed, _ in counts) / trials
    variance = rate * (1 - rate)
    room = trials - sum(n * n for _, n in counts) / trials - (tasks - 1)
    if variance == 0 or room <= 0:
        return 0.0
    spread = sum(n * (passed / n - rate) ** 2 for passed, n in counts)
    return min(max((spread / variance - (tasks - 1)) / room, 0.0), _MOST_LIKENESS)
