"""Laws of the estimators and intervals."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.stats.paired import ratio_of_tasks

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k, percentile, suite_interval, wilson_interval
from passgate.tasks.stats.measurement import decide
from passgate.tasks.stats.ratios import LEAST_PAIRS


class Counts(NamedTuple):
    n: int
    c: int
    k: int


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    n = draw(st.integers(1, 300))
    return Counts(n, draw(st.integers(0, n)), draw(st.integers(1, n)))


amounts = st.floats(1e-6, 1e6)
tasks = st.lists(st.tuples(st.lists(amounts, min_size=1, max_size=4), st.lists(amounts, min_size=1, max_size=4)))


@given(counts())
def test_an_estimate_is_a_chance(one: Counts) -> None:
    all_of_k, any_of_k = float(pass_hat_k(*one)), float(pass_at_k(*one))
    assert 0 <= all_of_k <= any_of_k + 1e-12 <= 1 + 1e-12


@given(counts())
def test_one_pass_more_never_lowers_an_estimate(one: Counts) -> None:
    if one.c < one.n:
        assert pass_at_k(*one) <= pass_at_k(one.n, one.c + 1, one.k)
        assert pass_hat_k(*one) <= pass_hat_k(one.n, one.c + 1, one.k)


@given(counts())
def test_a_larger_k_is_easier_once_and_harder_always(one: Counts) -> None:
    if one.k < one.n:
        assert pass_at_k(*one) <= pass_at_k(one.n, one.c, one.k + 1)
        assert pass_hat_k(*one) >= pass_hat_k(one.n, one.c, one.k + 1)


BY_PASSES = (Metric.PASS_AT_K, Metric.PASS_HAT_K)
"""Rules that look at which trials passed, not at their scores."""


@given(st.integers(1, 300), st.data())
def test_with_all_trials_drawn_the_estimate_is_the_rule(k: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, k))
    states = {metric: decide(metric, passed=c, failed=k - c, planned=k) for metric in BY_PASSES}
    assert pass_hat_k(k, c, k) == (states[Metric.PASS_HAT_K] is TaskState.PASSED)
    assert pass_at_k(k, c, k) == (states[Metric.PASS_AT_K] is TaskState.PASSED)


@given(st.sampled_from(BY_PASSES), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_a_decided_task_stays_decided_whatever_is_still_missing(
    metric: Metric, passed: int, failed: int, missing: int
) -> None:
    planned = passed + failed + missing
    state = decide(metric, passed=passed, failed=failed, planned=planned)
    for more in range(missing + 1):
        later = decide(metric, passed=passed + more, failed=failed + missing - more, planned=planned)
        if state is not TaskState.UNDECIDED:
            assert later is state
        elif planned:
            assert later is not TaskState.UNDECIDED


@given(st.lists(st.floats(0, 1), max_size=6), st.lists(st.floats(0, 1), max_size=6), st.floats(0, 1))
def test_a_mean_that_is_decided_stays_decided_whatever_is_still_missing(
    known: list[float], missing: list[float], threshold: float
) -> None:
    def decided(scores: list[float]) -> TaskState:
        planned = len(known) + len(missing)
        return decide(Metric.MEAN, passed=0, failed=0, planned=planned, scores=scores, threshold=threshold)

    state, later = decided(known), decided([*known, *missing])
    assert state in {TaskState.UNDECIDED, later}


@given(counts(), st.floats(0.5, 0.999))
def test_wilsons_interval_holds_the_rate_and_has_a_width(one: Counts, confidence: float) -> None:
    low, high = wilson_interval(one.n, one.c, confidence)
    assert 0 <= low <= one.c / one.n <= high <= 1
    assert low < high


@given(counts())
def test_wilsons_interval_is_symmetric(one: Counts) -> None:
    low, high = wilson_interval(one.n, one.c)
    assert wilson_interval(one.n, one.n - one.c) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_a_suites_interval_holds_its_value_and_has_a_width(value: float, size: int) -> None:
    low, high = suite_interval(value, size)
    assert 0 <= low <= value <= high <= 1
    assert low < high


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert found in values
    assert found is not None
    assert sum(value <= found for value in values) >= len(values) * percent / 100 - 1e-9


def in_two_runs(figures: dict[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    return {task: {"first": values, "later": values} for task, values in figures.items()}


@given(tasks)
def test_a_ratio_turns_around_with_its_sides(pairs: list[tuple[list[float], list[float]]]) -> None:
    now, before = ({str(place): pair[side] for place, pair in enumerate(pairs)} for side in (0, 1))
    there, back = ratio_of_tasks(now, in_two_runs(before)), ratio_of_tasks(before, in_two_runs(now))
    assert (there is None) == (back is None) == (len(pairs) < LEAST_PAIRS)
    if there is not None and back is not None:
        assert there.ratio * back.ratio == pytest.approx(1.0)
        assert np.isfinite(there.lower_bound)
        assert there.lower_bound > 0
