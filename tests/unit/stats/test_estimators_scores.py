"""The mean of scores and what it can be trusted for."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.stats.estimators import mean_lower_bound, student_t, weighted_mean

SHARES = st.floats(min_value=0, max_value=1)


def test_the_weighted_mean() -> None:
    assert weighted_mean([1.0, 0.0], [3, 1]) == 0.75
    assert weighted_mean([1.0, 0.0], [0, 0]) is None


@given(st.lists(st.tuples(SHARES, st.floats(min_value=0.1, max_value=100)), min_size=1, max_size=20))
def test_a_weighted_mean_lies_between_its_scores(pairs: list[tuple[float, float]]) -> None:
    scores = [score for score, _ in pairs]
    mean = weighted_mean(scores, [weight for _, weight in pairs])
    assert mean is not None
    assert min(scores) - 1e-9 <= mean <= max(scores) + 1e-9


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062047), (2, 4.3026527), (3, 3.1824463), (9, 2.2621572), (10, 2.2281389), (30, 2.0422725)],
)
def test_quantiles_of_students_t_as_tables_have_them(degrees: int, quantile: float) -> None:
    assert student_t(degrees, 0.975) == pytest.approx(quantile, abs=1e-7)


def test_the_lower_bound_of_a_mean() -> None:
    # mean 0.8333, s 0.2887, t(2) 4.3027
    assert mean_lower_bound([0.5, 1.0, 1.0]) == pytest.approx(0.1162245, abs=1e-6)
    assert mean_lower_bound([0.5, 0.5, 0.5]) == 0.5
    with pytest.raises(ValueError, match="at least two"):
        mean_lower_bound([1.0])


@given(st.lists(SHARES, min_size=2, max_size=20))
def test_a_lower_bound_is_never_above_the_mean_nor_below_0(scores: list[float]) -> None:
    assert 0 <= mean_lower_bound(scores) <= fmean(scores) + 1e-12
