"""Intervals that hold what they must, have a width where they must, and cover what they promise."""

import numpy as np
import pytest

from passgate.tasks.stats.intervals import TaskCounts, suite_interval, wilson_interval

NINE_OF_TEN = [TaskCounts(n=3, c=3, k=3, any_of_k=False)] * 9 + [TaskCounts(n=3, c=2, k=3, any_of_k=False)]


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


def test_no_trial_leaves_everything_open() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_more_confidence_is_wider() -> None:
    narrow, wide = wilson_interval(20, 15, 0.8), wilson_interval(20, 15, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(("n", "c"), [(3, 4), (3, -1)])
def test_impossible_counts_have_no_interval(n: int, c: int) -> None:
    with pytest.raises(ValueError, match="0 <= c <= n"):
        wilson_interval(n, c)


def test_a_suites_interval_holds_its_estimate() -> None:
    low, high = suite_interval(NINE_OF_TEN, 0.9)
    assert low < 0.9 < high


def test_the_estimate_is_inside_also_where_the_bootstrap_is_not() -> None:
    low, high = suite_interval([TaskCounts(n=100, c=50, k=1, any_of_k=True)], 1.0)
    assert (low < 0.6, high) == (True, 1.0)


def test_the_same_counts_give_the_same_interval() -> None:
    assert suite_interval(NINE_OF_TEN, 0.9) == suite_interval(NINE_OF_TEN, 0.9)


def test_the_order_of_the_tasks_is_only_noise() -> None:
    assert suite_interval(NINE_OF_TEN[::-1], 0.9) == pytest.approx(suite_interval(NINE_OF_TEN, 0.9), abs=0.03)


@pytest.mark.parametrize("any_of_k", [True, False])
def test_all_passed_is_not_certain(any_of_k: bool) -> None:
    low, high = suite_interval([TaskCounts(n=3, c=3, k=3, any_of_k=any_of_k)] * 5, 1.0)
    assert low < 0.999
    assert high == 1.0


def test_none_passed_is_not_certain() -> None:
    low, high = suite_interval([TaskCounts(n=3, c=0, k=3, any_of_k=True)] * 5, 0.0)
    assert low == 0.0
    assert high > 0.05


def test_more_trials_are_narrower() -> None:
    few = suite_interval([TaskCounts(n=3, c=3, k=1, any_of_k=False)] * 10, 1.0)
    many = suite_interval([TaskCounts(n=100, c=100, k=1, any_of_k=False)] * 10, 1.0)
    assert few[0] < many[0]


def test_one_pass_is_enough_counts_more_than_all_must_pass() -> None:
    half = {"n": 10, "c": 5, "k": 3}
    any_of_k = suite_interval([TaskCounts(**half, any_of_k=True)] * 5, 0.9)
    all_of_k = suite_interval([TaskCounts(**half, any_of_k=False)] * 5, 0.1)
    assert all_of_k[1] < any_of_k[0]


def test_no_task_leaves_everything_open() -> None:
    assert suite_interval([], 1.0) == (0.0, 1.0)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Suites of 20 tasks drawn from one distribution of pass rates, three trials each: the mean of p^3."""
    random, truth, runs = np.random.default_rng(1), 0.0, 200
    covered = 0
    rates = random.beta(8, 2, size=200_000)
    truth = float(np.mean(rates**3))
    for _ in range(runs):
        passed = random.binomial(3, random.beta(8, 2, size=20))
        counts = [TaskCounts(n=3, c=int(c), k=3, any_of_k=False) for c in passed]
        low, high = suite_interval(counts, float(np.mean(passed == 3)))
        covered += low <= truth <= high
    assert 0.90 <= covered / runs
    assert covered / runs < 1.0
