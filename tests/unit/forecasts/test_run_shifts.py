"""By how much whole runs differ, and what that makes of a pass rate."""

import numpy as np
import pytest

from passgate.tasks.forecasts.run_shifts import NO_SHIFT, Told, shifts_of, spread_of


def history(rate: float, spread: float, seed: int, *, tasks: int = 20, runs: int = 20, k: int = 3) -> list[Told]:
    """Tasks of an agent with one pass rate, whose runs differ by a normal shift of it."""
    rng = np.random.default_rng(seed)
    rates = np.clip(rate + rng.normal(0, spread, runs), 0, 1)
    passed = rng.binomial(k, rates, (tasks, runs))
    return [Told(passed.mean() / k, {str(run): (int(one), k) for run, one in enumerate(row)}) for row in passed]


@pytest.mark.parametrize("rate", [0.99, 0.95, 0.8])
def test_a_healthy_history_shows_no_difference(rate: float) -> None:
    assert [spread_of(history(rate, 0.0, seed)) for seed in range(30)] == [0.0] * 30


def test_runs_that_differ_are_told() -> None:
    found = [spread_of(history(0.9, 0.1, seed)) for seed in range(10)]
    assert all(found)
    assert np.mean(found) == pytest.approx(0.1, abs=0.03)
    assert spread_of(history(0.9, 0.3, 1, runs=1)) == 0.0
    assert spread_of([]) == 0.0


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.95, 0.99, 1.0])
def test_the_mean_over_the_runs_is_the_rate_of_the_task(rate: float) -> None:
    shifts = shifts_of(0.05)
    rates = shifts.rates(rate)
    assert np.dot(rates, shifts.weights) == pytest.approx(rate, abs=1e-6)
    assert rates == sorted(rates)
    assert all(0 <= one <= 1 for one in rates)


def test_without_a_spread_there_is_one_kind_of_run() -> None:
    assert (shifts_of(0.0), NO_SHIFT.rates(0.95)) == (NO_SHIFT, [0.95])
