"""By how much whole runs differ, and what that makes of a pass rate."""

import numpy as np
import pytest

from passgate.tasks.forecasts.run_shifts import RunCounts, centre, spread_of


def history(rate: float, spread: float, seed: int, *, tasks: int = 20, runs: int = 20, k: int = 3) -> list[RunCounts]:
    """Tasks of an agent with one pass rate, whose runs differ by a normal shift of it."""
    rng = np.random.default_rng(seed)
    rates = np.clip(rate + rng.normal(0, spread, runs), 0, 1)
    passed = rng.binomial(k, rates, (tasks, runs))
    return [RunCounts(passed.mean() / k, {str(run): (int(one), k) for run, one in enumerate(row)}) for row in passed]


@pytest.mark.parametrize("rate", [0.99, 0.95, 0.8])
def test_a_healthy_history_shows_no_difference(rate: float) -> None:
    assert [spread_of(history(rate, 0.0, seed)) for seed in range(30)] == [0.0] * 30


def test_runs_that_differ_are_told() -> None:
    found = [spread_of(history(0.9, 0.1, seed)) for seed in range(10)]
    assert all(found)
    assert np.mean(found) == pytest.approx(0.1, abs=0.03)
    assert spread_of(history(0.9, 0.3, 1, runs=1)) == 0.0
    assert spread_of([]) == 0.0


@pytest.mark.parametrize("rate", [0.3, 0.95, 0.99])
def test_the_mean_over_the_runs_is_the_rate_of_the_task(rate: float) -> None:
    shifts = np.random.default_rng(1).normal(0, 0.05, 200_000)
    assert np.clip(centre(rate, 0.05) + shifts, 0, 1).mean() == pytest.approx(rate, abs=0.001)
