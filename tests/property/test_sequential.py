"""Laws of the sequential test: against every course that its trials can take."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import costly

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import SequentialTest
from passgate.tasks.stats.decision import operating_characteristic, sprt

rates = st.floats(0, 1)
risks = st.floats(0.001, 0.45)
outcomes = st.lists(st.sampled_from([True, False, None]), max_size=12)


@st.composite
def rules(draw: st.DrawFn) -> SequentialTest:
    reject = draw(st.floats(0.05, 0.9))
    accept = draw(st.floats(reject + 0.02, 0.97))
    return SequentialTest(accept=accept, reject=reject, alpha=draw(risks), beta=draw(risks))


def decided_after(course: tuple[bool, ...], rule: SequentialTest) -> tuple[TaskState, int]:
    """What a course of trials comes to, and after how many of them."""
    for n in range(len(course) + 1):
        answer = sprt(course[:n], rule, len(course))
        if answer is not TaskState.UNDECIDED:
            return answer, n
    raise AssertionError("the last trial must end it")


@given(rules(), st.integers(1, 8), rates)
def test_the_operating_characteristic_is_that_of_all_courses_together(
    rule: SequentialTest, k: int, rate: float
) -> None:
    accepts = expected = 0.0
    for course in product((True, False), repeat=k):
        chance = rate ** sum(course) * (1 - rate) ** (k - sum(course))
        answer, n = decided_after(course, rule)
        accepts += chance * (answer is TaskState.PASSED)
        expected += chance * n
    assert operating_characteristic(rule, k, rate) == pytest.approx((accepts, expected), abs=1e-9)


@given(rules(), st.integers(1, 40), rates, rates)
def test_a_task_that_passes_more_often_is_never_accepted_less(
    rule: SequentialTest, k: int, one: float, other: float
) -> None:
    low, high = (operating_characteristic(rule, k, rate).accepts for rate in sorted((one, other)))
    assert low <= high + 1e-9


@given(rules(), st.integers(1, 12), outcomes)
def test_what_is_decided_stays_decided_whatever_was_not_measured(
    rule: SequentialTest, k: int, course: list[bool | None]
) -> None:
    """And what is open can still go both ways."""
    gaps = [place for place, outcome in enumerate([*course[:k], *[None] * (k - len(course))]) if outcome is None]
    found = set()
    for filled in product((True, False), repeat=min(len(gaps), 8)):
        whole = [*course[:k], *[None] * (k - len(course))]
        for place, outcome in zip(gaps, filled, strict=False):
            whole[place] = outcome
        if len(gaps) <= 8:
            found.add(sprt(whole, rule, k))
    answer = sprt(course, rule, k)
    if found:
        assert found == ({TaskState.PASSED, TaskState.FAILED} if answer is TaskState.UNDECIDED else {answer})


@costly
@given(st.sampled_from([(0.95, 0.7), (0.99, 0.8), (0.9, 0.6)]), st.floats(0.01, 0.2), st.floats(0.01, 0.2))
def test_with_trials_enough_both_risks_are_held(pair: tuple[float, float], alpha: float, beta: float) -> None:
    """Wald's bounds: a good task fails with at most alpha / (1 - beta), a bad one passes with beta / (1 - alpha)."""
    rule = SequentialTest(accept=pair[0], reject=pair[1], alpha=alpha, beta=beta)
    good, bad = (operating_characteristic(rule, 300, rate) for rate in (rule.accept, rule.reject))
    assert 1 - good.accepts <= alpha / (1 - beta) + 1e-6
    assert bad.accepts <= beta / (1 - alpha) + 1e-6
    assert good.expected_trials < 120
    assert bad.expected_trials < 120


def test_the_risks_are_about_what_was_asked_for() -> None:
    rule = SequentialTest(accept=0.95, reject=0.9)
    good, bad = (operating_characteristic(rule, 600, rate).accepts for rate in (rule.accept, rule.reject))
    assert 0.025 < 1 - good < 0.0527
    assert 0.025 < bad < 0.0527
