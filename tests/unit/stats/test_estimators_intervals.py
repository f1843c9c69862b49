"""Intervals that hold what they must, have a width where they must, and cover what they promise."""

from collections.abc import Callable

import numpy as np
import pytest

from passgate.tasks.stats.estimators import suite_interval, wilson_interval


@pytest.mark.parametrize(
    ("n", "c", "low", "high"),
    [
        (10, 0, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (10, 5, 0.2366, 0.7634),
        (3, 3, 0.4385, 1.0),
        (100, 98, 0.9300, 0.9945),
        (15, 11, 0.4805, 0.8910),
    ],
)
def test_wilsons_interval_has_the_known_ends(n: int, c: int, low: float, high: float) -> None:
    assert wilson_interval(n, c) == pytest.approx((low, high), abs=5e-5)


def test_nothing_known_leaves_everything_open() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert suite_interval(0.0, 0) == (0.0, 1.0)


def test_more_confidence_is_wider_and_more_tasks_are_narrower() -> None:
    narrow, wide = wilson_interval(20, 15, 0.8), wilson_interval(20, 15, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert suite_interval(1.0, 5)[0] < suite_interval(1.0, 50)[0] < 1.0


@pytest.mark.parametrize(("n", "c"), [(3, 4), (3, -1)])
def test_impossible_counts_have_no_interval(n: int, c: int) -> None:
    with pytest.raises(ValueError, match="0 <= c <= n"):
        wilson_interval(n, c)


def test_a_suites_interval_is_that_of_a_sample_of_its_tasks() -> None:
    assert suite_interval(0.9, 10) == pytest.approx((0.5958, 0.9821), abs=5e-5)
    assert suite_interval(7 / 12, 12) == pytest.approx(wilson_interval(12, 7))


@pytest.mark.parametrize(("value", "tasks", "low", "high"), [(1.0, 5, 0.5655, 1.0), (0.0, 5, 0.0, 0.4345)])
def test_a_suite_that_passed_or_failed_as_a_whole_is_not_certain(
    value: float, tasks: int, low: float, high: float
) -> None:
    assert suite_interval(value, tasks) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_what_is_no_share_has_no_interval(value: float) -> None:
    with pytest.raises(ValueError, match="0 <= value <= 1"):
        suite_interval(value, 3)


@pytest.mark.parametrize("tasks", [5, 10, 30])
@pytest.mark.parametrize(
    ("k", "rates"),
    [
        pytest.param(3, lambda random, size: np.full(size, 0.98), id="a healthy agent"),
        pytest.param(10, lambda random, size: np.full(size, 0.98), id="a healthy agent, ten trials"),
        pytest.param(3, lambda random, size: random.beta(8, 2, size), id="an agent of mixed ability"),
        pytest.param(3, lambda random, size: np.where(random.random(size) < 0.9, 1.0, 0.3), id="one task in ten"),
        pytest.param(1, lambda random, size: np.full(size, 0.5), id="a coin"),
    ],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(
    tasks: int, k: int, rates: Callable[[np.random.Generator, int], np.ndarray]
) -> None:
    """Runs of agents whose pass rate of every task is known, k trials each, decided by pass^k."""
    random, runs = np.random.default_rng(1), 600
    truth = float(np.mean(rates(random, 100_000) ** k))
    covered = 0
    for _ in range(runs):
        value = float(np.mean(random.binomial(k, rates(random, tasks)) == k))
        low, high = suite_interval(value, tasks)
        covered += low <= truth <= high
    assert covered / runs >= 0.89
