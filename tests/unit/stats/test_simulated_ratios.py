"""Simulated gates whose latency or cost has not changed."""

import random
from math import exp

import numpy as np
import pytest

from passgate.tasks.stats.comparisons import LEAST_PAIRS, paired_ratio
from passgate.tasks.stats.simulated_ratios import Pair, simulated_bounds

PAIRS = [Pair(60, 3, 0.5)] * 20


def shares(bounds, limit: float) -> float:
    return float(np.mean(bounds > limit))


@pytest.mark.parametrize("limit", [1.0, 1.05, 1.1])
def test_is_the_comparison_that_the_gate_makes(limit: float) -> None:
    seed, reds = random.Random(3), 0
    for _ in range(1500):
        before, now = ([[exp(seed.gauss(0, 0.5)) for _ in range(count)] for _ in range(20)] for count in (60, 3))
        ratio = paired_ratio(now, before)
        assert ratio is not None
        reds += ratio.lower_bound > limit
    bounds = simulated_bounds(PAIRS, 20_000, seed=1)
    assert bounds is not None
    assert shares(bounds, limit) == pytest.approx(reds / 1500, abs=0.03)


def test_runs_that_drift_are_red_more_often() -> None:
    calm, drifting = simulated_bounds(PAIRS, 5000, 1), simulated_bounds(PAIRS, 5000, 1, drift=0.2, runs=20)
    assert calm is not None
    assert drifting is not None
    assert shares(calm, 1.15) < 0.02 < 0.1 < shares(drifting, 1.15)


def test_the_same_seed_gives_the_same_gates() -> None:
    first, second, other = (simulated_bounds(PAIRS, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_too_few_tasks_are_not_compared() -> None:
    assert simulated_bounds(PAIRS[: LEAST_PAIRS - 1], 10, 1) is None
    assert simulated_bounds(PAIRS[:LEAST_PAIRS], 10, 1) is not None


def test_a_task_whose_spread_is_not_known_has_that_of_the_others() -> None:
    unknown = [Pair(60, 3, None)] * 10
    assert np.array_equal(simulated_bounds([*PAIRS[:10], *unknown], 50, 1), simulated_bounds(PAIRS, 50, 1))
    assert simulated_bounds(unknown, 10, 1) is None
