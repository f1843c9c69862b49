"""Simulated gates whose latency or cost has not changed."""

import random
from math import exp

import numpy as np
import pytest

from passgate.tasks.stats.ratios import LEAST_PAIRS, Pair, simulated_bounds
from tests.unit.stats.paired import ratio_of_tasks

PAIRS = [Pair(60, 3, 0.5)] * 20


def shares(bounds, limit: float) -> float:
    return float(np.mean(bounds > limit))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "drift"), [(20, 0.0), (20, 0.2), (3, 0.2), (2, 0.05)])
def test_is_the_comparison_that_the_gate_makes(runs: int, drift: float) -> None:
    seed, found = random.Random(3), []
    for _ in range(400):
        shifts = [seed.gauss(0, drift) for _ in range(runs + 1)]
        now, *before = [[[exp(seed.gauss(shift, 0.5)) for _ in range(3)] for _ in range(20)] for shift in shifts]
        ratio = ratio_of_tasks(
            {str(task): values for task, values in enumerate(now)},
            {str(task): {str(run): of_run[task] for run, of_run in enumerate(before)} for task in range(20)},
        )
        assert ratio is not None
        found.append(ratio.lower_bound)
    bounds = simulated_bounds([Pair(3 * runs, 3, 0.5)] * 20, 20_000, seed=1, drift=drift, runs=runs)
    assert bounds is not None
    for limit in (0.8, 1.0, 1.1):
        assert shares(bounds, limit) == pytest.approx(shares(np.array(found), limit), abs=0.05)


def test_runs_that_drift_are_red_more_often() -> None:
    steady, drifting = simulated_bounds(PAIRS, 5000, 1, runs=20), simulated_bounds(PAIRS, 5000, 1, drift=0.2, runs=20)
    assert steady is not None
    assert drifting is not None
    assert shares(steady, 1.0) < 0.002 < shares(drifting, 1.0) + 0.001 < 0.006


def test_the_same_seed_gives_the_same_gates() -> None:
    first, second, other = (simulated_bounds(PAIRS, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_too_few_tasks_and_a_single_run_are_not_compared() -> None:
    assert simulated_bounds(PAIRS[: LEAST_PAIRS - 1], 10, 1) is None
    assert simulated_bounds(PAIRS[:LEAST_PAIRS], 10, 1) is not None
    assert simulated_bounds(PAIRS, 10, 1, runs=1) is None
    assert simulated_bounds(PAIRS, 10, 1, runs=2) is not None


def test_a_task_whose_spread_is_not_known_has_that_of_the_others() -> None:
    unknown = [Pair(60, 3, None)] * 10
    assert np.array_equal(simulated_bounds([*PAIRS[:10], *unknown], 50, 1), simulated_bounds(PAIRS, 50, 1))
    assert simulated_bounds(unknown, 10, 1) is None
