"""Estimators against counting by hand; intervals that hold what they must, and cover what they promise."""

from collections.abc import Callable
from itertools import combinations
from math import isnan
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.stats.estimators import (
    binomial,
    mean_lower_bound,
    pass_at_k,
    pass_hat_k,
    percentile,
    shrunk_rates,
    student_t_quantiles,
    suite_interval,
    weighted_mean,
    wilson_interval,
)

SHARES = st.floats(min_value=0, max_value=1)
Estimator = Callable[..., float]
both = pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])


@pytest.mark.parametrize(
    ("n", "c", "k"), [(n, c, k) for n in range(1, 9) for c in range(n + 1) for k in range(1, n + 1)]
)
def test_the_estimates_are_the_shares_of_draws_with_a_pass_and_with_passes_alone(n: int, c: int, k: int) -> None:
    """Of every way to draw k of n trials of which c passed."""
    every = [sum(drawn) for drawn in combinations([1] * c + [0] * (n - c), k)]
    assert pass_at_k(n, c, k) == pytest.approx(sum(passed > 0 for passed in every) / len(every), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(sum(passed == k for passed in every) / len(every), abs=1e-12)


def test_the_figures_of_the_papers_examples_and_of_astronomic_binomials() -> None:
    assert pass_at_k(10, 3, 5) == pytest.approx(1 - 21 / 252)
    assert pass_hat_k(8, 6, 3) == pytest.approx(20 / 56)
    assert pass_hat_k(100_000, 99_999, 1000) == pytest.approx(0.99)
    assert pass_at_k(100_000, 1, 1000) == pytest.approx(0.01)


@both
def test_fewer_than_k_trials_say_nothing(estimator: Estimator) -> None:
    assert isnan(estimator(2, 2, 3))
    assert isnan(estimator(0, 0, 1))


def test_arrays_give_what_their_elements_give() -> None:
    n, c, k = [3, 5, 2, 10], [3, 2, 1, 9], [3, 2, 3, 5]
    np.testing.assert_allclose(pass_at_k(n, c, k), [float(pass_at_k(*one)) for one in zip(n, c, k, strict=True)])
    np.testing.assert_allclose(pass_hat_k(n, c, k), [float(pass_hat_k(*one)) for one in zip(n, c, k, strict=True)])
    passed, sizes = np.arange(6)[:, None], np.array([1, 2, 5])
    assert pass_hat_k(5, passed, sizes).shape == (6, 3)
    assert pass_hat_k(5, passed, sizes)[4].tolist() == pytest.approx([0.8, 0.6, 0.0])
    empty = np.array([], dtype=np.int64)
    assert pass_at_k(empty, empty, empty).shape == (0,)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 2, 0), (-1, 0, 1), ([3, 3], [1, 4], [1, 1])])
@both
def test_impossible_counts_are_refused(estimator: Estimator, n: object, c: object, k: object) -> None:
    with pytest.raises(ValueError, match="0 <= c <= n and k >= 1"):
        estimator(n, c, k)


def test_the_chances_of_every_number() -> None:
    assert binomial(3, 0.5) == [0.125, 0.375, 0.375, 0.125]
    assert (binomial(0, 0.3), binomial(2, 1.0)) == ([1.0], [0.0, 0.0, 1.0])
    assert sum(binomial(40, 0.37)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("n", "c", "low", "high"),
    [(0, 0, 0.0, 1.0), (10, 0, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (3, 3, 0.4385, 1.0), (15, 11, 0.4805, 0.8910)],
)
def test_wilsons_interval_has_the_known_ends(n: int, c: int, low: float, high: float) -> None:
    assert wilson_interval(n, c) == pytest.approx((low, high), abs=5e-5)


def test_more_confidence_is_wider_and_more_tasks_are_narrower() -> None:
    narrow, wide = wilson_interval(20, 15, 0.8), wilson_interval(20, 15, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert suite_interval(1.0, 5)[0] < suite_interval(1.0, 50)[0] < 1.0


@pytest.mark.parametrize(
    ("value", "tasks", "low", "high"),
    [(0.0, 0, 0.0, 1.0), (0.9, 10, 0.5958, 0.9821), (1.0, 5, 0.5655, 1.0), (0.0, 5, 0.0, 0.4345)],
)
def test_a_suites_interval_is_that_of_a_sample_of_its_tasks(value: float, tasks: int, low: float, high: float) -> None:
    assert suite_interval(value, tasks) == pytest.approx((low, high), abs=5e-5)
    assert suite_interval(7 / 12, 12) == pytest.approx(wilson_interval(12, 7))


def test_what_is_no_share_or_no_count_has_no_interval() -> None:
    for value in (-0.01, 1.01, float("nan")):
        with pytest.raises(ValueError, match="0 <= value <= 1"):
            suite_interval(value, 3)
    for c in (4, -1):
        with pytest.raises(ValueError, match="0 <= c <= n"):
            wilson_interval(3, c)


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


@pytest.mark.parametrize(
    ("count", "percent", "rank"), [(1, 95, 1), (20, 95, 19), (100, 50, 50), (3, 0, 1), (3, 100, 3)]
)
def test_a_percentile_is_the_nearest_rank_in_any_order(count: int, percent: float, rank: int) -> None:
    assert percentile([float(value) for value in range(count, 0, -1)], percent) == rank
    assert percentile([], percent) is None


def test_the_weighted_mean() -> None:
    assert weighted_mean([1.0, 0.0], [3, 1]) == 0.75
    assert weighted_mean([1.0, 0.0], [0, 0]) is None


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062047), (2, 4.3026527), (3, 3.1824463), (9, 2.2621572), (10, 2.2281389), (30, 2.0422725)],
)
def test_quantiles_of_students_t_as_tables_have_them(degrees: int, quantile: float) -> None:
    assert float(student_t_quantiles(np.array(float(degrees)), 0.975)) == pytest.approx(quantile, rel=1e-6)


def test_the_lower_bound_of_a_mean() -> None:
    # mean 0.8333, s 0.2887, t(2) 4.3027
    assert mean_lower_bound([0.5, 1.0, 1.0]) == pytest.approx(0.1162245, abs=1e-6)
    assert mean_lower_bound([0.5, 0.5, 0.5]) == 0.5
    with pytest.raises(ValueError, match="at least two"):
        mean_lower_bound([1.0])


@given(st.lists(SHARES, min_size=2, max_size=20))
def test_a_lower_bound_is_never_above_the_mean_nor_below_0(scores: list[float]) -> None:
    assert 0 <= mean_lower_bound(scores) <= fmean(scores) + 1e-12


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        pytest.param([(60, 60)] * 20, 1200.5 / 1201, id="none ever failed"),
        pytest.param([(59, 60)] * 10 + [(60, 60)] * 10, 1190.5 / 1201, id="tasks differ by chance alone"),
        pytest.param([(60, 60), (0, 0)], 60.5 / 61, id="one without trials"),
        pytest.param([(3, 3)], 3.5 / 4, id="one alone has Jeffreys' mean"),
        pytest.param([(0, 3)], 0.5 / 4, id="one alone that failed"),
    ],
)
def test_tasks_that_are_alike_have_one_rate(counts: list[tuple[int, int]], rate: float) -> None:
    (one,) = set(shrunk_rates(counts))
    assert one == pytest.approx(rate)


def test_a_task_that_stands_out_keeps_most_of_its_own_rate_and_none_is_0_or_1() -> None:
    worst, *others = shrunk_rates([(30, 60), *[(60, 60)] * 19])
    assert 0.5 < worst < 0.53
    assert all(0.999 < rate < 1 for rate in others)
    assert all(0.01 < rate < 0.99 for rate in shrunk_rates([(0, 10), (10, 10)]))


@pytest.mark.parametrize(
    ("counts", "message"), [([], "trials"), ([(0, 0)], "trials"), ([(2, 1)], "passed"), ([(-1, 1)], "passed")]
)
def test_counts_that_cannot_be_are_refused(counts: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shrunk_rates(counts)
