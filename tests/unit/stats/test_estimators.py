"""pass@k and pass^k against counting every draw by hand."""

from itertools import combinations
from math import isnan

import numpy as np
import pytest

from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k

EVERY_COUNT = [(n, c, k) for n in range(1, 9) for c in range(n + 1) for k in range(1, n + 1)]


def draws(n: int, c: int, k: int) -> list[int]:
    """How many of the k drawn trials passed, for every way to draw k of n trials of which c passed."""
    trials = [1] * c + [0] * (n - c)
    return [sum(drawn) for drawn in combinations(trials, k)]


@pytest.mark.parametrize(("n", "c", "k"), EVERY_COUNT)
def test_pass_at_k_is_the_share_of_draws_with_a_pass(n: int, c: int, k: int) -> None:
    every = draws(n, c, k)
    assert pass_at_k(n, c, k) == pytest.approx(sum(passed > 0 for passed in every) / len(every), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), EVERY_COUNT)
def test_pass_hat_k_is_the_share_of_draws_that_all_pass(n: int, c: int, k: int) -> None:
    every = draws(n, c, k)
    assert pass_hat_k(n, c, k) == pytest.approx(sum(passed == k for passed in every) / len(every), abs=1e-12)


def test_the_figures_of_the_papers_examples_and_of_astronomic_binomials() -> None:
    assert pass_at_k(10, 3, 5) == pytest.approx(1 - 21 / 252)
    assert pass_hat_k(8, 6, 3) == pytest.approx(20 / 56)
    assert pass_hat_k(100_000, 99_999, 1000) == pytest.approx(0.99)
    assert pass_at_k(100_000, 1, 1000) == pytest.approx(0.01)


@pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])
def test_fewer_than_k_trials_say_nothing(estimator: object) -> None:
    assert callable(estimator)
    assert isnan(estimator(2, 2, 3))
    assert isnan(estimator(0, 0, 1))


@pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])
def test_k_of_one_is_the_pass_rate(estimator: object) -> None:
    assert callable(estimator)
    assert estimator(7, 3, 1) == pytest.approx(3 / 7)


def test_arrays_give_what_their_elements_give() -> None:
    n, c, k = [3, 5, 2, 10], [3, 2, 1, 9], [3, 2, 3, 5]
    np.testing.assert_allclose(pass_at_k(n, c, k), [float(pass_at_k(*one)) for one in zip(n, c, k, strict=True)])
    np.testing.assert_allclose(pass_hat_k(n, c, k), [float(pass_hat_k(*one)) for one in zip(n, c, k, strict=True)])
    passed, sizes = np.arange(6)[:, None], np.array([1, 2, 5])
    assert pass_hat_k(5, passed, sizes).shape == (6, 3)
    assert pass_hat_k(5, passed, sizes)[4].tolist() == pytest.approx([0.8, 0.6, 0.0])
    empty = np.array([], dtype=np.int64)
    assert pass_at_k(empty, empty, empty).shape == (0,)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 2, 0), (-1, 0, 1)])
@pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])
def test_impossible_counts_are_refused(estimator: object, n: int, c: int, k: int) -> None:
    assert callable(estimator)
    with pytest.raises(ValueError, match="0 <= c <= n and k >= 1"):
        estimator(n, c, k)


def test_one_impossible_count_among_many_is_refused() -> None:
    with pytest.raises(ValueError, match="0 <= c <= n"):
        pass_at_k([3, 3], [1, 4], [1, 1])
