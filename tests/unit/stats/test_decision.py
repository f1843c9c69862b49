"""The AND and the OR rule, rules of scores, and the sequential probability ratio test."""

from math import log

import pytest

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric, SequentialTest
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.stats.decision import (
    OperatingCharacteristic,
    decide,
    decide_by,
    in_order,
    operating_characteristic,
    score_of,
    sprt,
)
from tests.builders import a_task, a_trial, trials_of

PASSED, FAILED, UNDECIDED = TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED


@pytest.mark.parametrize(
    ("passed", "failed", "planned", "all_must", "one_is_enough"),
    [
        (3, 0, 3, PASSED, PASSED),
        (2, 1, 3, FAILED, PASSED),
        (1, 2, 3, FAILED, PASSED),
        (0, 3, 3, FAILED, FAILED),
        (2, 0, 3, UNDECIDED, PASSED),
        (0, 2, 3, FAILED, UNDECIDED),
        (0, 1, 3, FAILED, UNDECIDED),
        (1, 1, 3, FAILED, PASSED),
        (0, 0, 3, UNDECIDED, UNDECIDED),
        (1, 0, 1, PASSED, PASSED),
        (0, 1, 1, FAILED, FAILED),
        (0, 0, 0, UNDECIDED, UNDECIDED),
    ],
)
def test_what_the_trials_say_of_a_task(
    passed: int, failed: int, planned: int, all_must: TaskState, one_is_enough: TaskState
) -> None:
    assert decide(Metric.PASS_HAT_K, passed=passed, failed=failed, planned=planned) is all_must
    assert decide(Metric.PASS_AT_K, passed=passed, failed=failed, planned=planned) is one_is_enough


@pytest.mark.parametrize(
    ("scores", "planned", "by_mean", "by_interval"),
    [
        ([1.0, 1.0, 1.0], 3, PASSED, PASSED),
        ([0.8, 0.8, 0.8], 3, PASSED, PASSED),
        ([0.7, 0.8, 1.0], 3, PASSED, FAILED),
        ([0.5, 0.8, 1.0], 3, FAILED, FAILED),
        ([0.0, 0.5], 3, FAILED, UNDECIDED),
        ([1.0, 1.0], 3, UNDECIDED, UNDECIDED),
        ([1.0] * 9, 10, PASSED, UNDECIDED),
        ([], 3, UNDECIDED, UNDECIDED),
    ],
)
def test_what_the_scores_say_of_a_task(
    scores: list[float], planned: int, by_mean: TaskState, by_interval: TaskState
) -> None:
    def decided(metric: Metric) -> TaskState:
        return decide(metric, passed=0, failed=len(scores), planned=planned, scores=scores, threshold=0.8)

    assert decided(Metric.MEAN) is by_mean
    assert decided(Metric.CONFIDENCE_INTERVAL) is by_interval


def test_the_value_of_a_task_by_its_scores() -> None:
    assert score_of(Metric.MEAN, [0.5, 1.0], 2) == 0.75
    assert score_of(Metric.MEAN, [0.5, 1.0], 3) is None
    assert score_of(Metric.CONFIDENCE_INTERVAL, [0.5, 0.5], 2) == 0.5
    assert score_of(Metric.CONFIDENCE_INTERVAL, [0.5], 1) is None


@pytest.mark.parametrize("metric", [Metric.PASS_HAT_K, Metric.PASS_AT_K])
@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("pppppfpppppp", PASSED),
        ("ff", FAILED),
        ("pf", UNDECIDED),
        ("pppppppppp", PASSED),
        ("ppppp-pppp", UNDECIDED),
    ],
)
def test_a_sequential_test_decides_in_place_of_the_rule(metric: Metric, letters: str, state: TaskState) -> None:
    passed, failed = letters.count("p"), letters.count("f")
    test = SequentialTest(accept=0.95, reject=0.7)
    found = decide(metric, passed=passed, failed=failed, planned=12, sequential=test, outcomes=outcomes(letters))
    assert found is state


def test_the_state_of_a_task_by_its_trials() -> None:
    task = a_task()
    states = [decide_by(task, trials_of(task, letters)) for letters in ("ppp", "ppe", "fll", "")]
    assert states == [PASSED, UNDECIDED, FAILED, UNDECIDED]
    confirming = [a_trial(task, number, TrialStatus.FAILED) for number in (3, 4)]
    assert decide_by(task, [*trials_of(task, "ppp"), *confirming]) is PASSED
    assert decide_by(task, [*trials_of(task, "pp"), a_trial(task, 3)]) is UNDECIDED
    task = a_task(metric=Metric.MEAN, k=2, scoring={"rule": "weighted_average", "threshold": 0.7})
    assert decide_by(task, [a_trial(task, number, score=score) for number, score in enumerate((0.6, 0.8))]) is PASSED


def test_the_trials_of_a_sequential_test_count_in_their_order() -> None:
    assert in_order([(2, False), (0, True), (7, True)], 4) == (True, None, False, None)
    task = a_task(k=10, sequential=STEEP)
    trials = trials_of(task, "pppfffffff")
    assert [decide_by(task, some) for some in (trials, trials[::-1], trials[3:])] == [PASSED, PASSED, UNDECIDED]


RULE = SequentialTest(accept=0.95, reject=0.7)
"""A pass is worth log(0.95 / 0.7) = 0.305, a failure log(0.3 / 0.05) = 1.792, the bounds are log(19) = 2.944: ten
passes accept, two failures before the second pass reject."""
STEEP = SequentialTest(accept=0.8, reject=0.2)
"""A pass and a failure are worth the same, log 4 = 1.386: three more of one kind than of the other decide."""


def outcomes(letters: str) -> list[bool | None]:
    return [{"p": True, "f": False, "-": None}[letter] for letter in letters]


@pytest.mark.parametrize(
    ("letters", "answer"),
    [
        *((letters, PASSED) for letters in ("ppp", "ppfpp", "pppfffffff", "pp-pp")),
        *((letters, FAILED) for letters in ("fff", "ffpff", "fffppppppp", "-ffff", "fff-")),
        *((letters, UNDECIDED) for letters in ("", "pp", "ppfp", "-", "pp-", "p-p", "-fff", "f-ppp-")),
    ],
)
def test_it_decides_once_a_bound_is_reached_that_no_trial_that_was_not_measured_could_turn(
    letters: str, answer: TaskState
) -> None:
    assert sprt(outcomes(letters), STEEP, 100) is answer


def test_the_bounds_are_walds_and_each_risk_moves_its_own() -> None:
    pass_ratio = log(0.95 / 0.7)
    assert 9 * pass_ratio < log(0.95 / 0.05) <= 10 * pass_ratio
    assert (sprt([True] * 9, RULE, 100), sprt([True] * 10, RULE, 100)) == (UNDECIDED, PASSED)
    assert (sprt(outcomes("f"), RULE, 100), sprt(outcomes("ff"), RULE, 100)) == (UNDECIDED, FAILED)
    careful_to_fail = SequentialTest(accept=0.8, reject=0.2, alpha=0.001)
    careful_to_pass = SequentialTest(accept=0.8, reject=0.2, beta=0.001)
    assert (sprt([True] * 3, careful_to_fail, 100), sprt([False] * 3, careful_to_fail, 100)) == (PASSED, UNDECIDED)
    assert (sprt([True] * 3, careful_to_pass, 100), sprt([False] * 3, careful_to_pass, 100)) == (UNDECIDED, FAILED)


@pytest.mark.parametrize(
    ("letters", "answer"),
    [("ppfpf", PASSED), ("ppffp", PASSED), ("ffppf", FAILED), *((some, UNDECIDED) for some in ("pf", "pfpf", "ppf"))],
)
def test_the_last_trial_ends_it_at_the_nearer_hypothesis(letters: str, answer: TaskState) -> None:
    assert sprt(outcomes(letters), STEEP, 5) is answer


def test_it_is_decided_once_the_trials_to_come_cannot_turn_it() -> None:
    """Nine passes do not reach the bound, but with a failure as the tenth the task is nearer to `accept` too."""
    assert (sprt([True] * 8, RULE, 10), sprt([True] * 9, RULE, 10)) == (UNDECIDED, PASSED)
    assert sprt(outcomes("pppppppff"), RULE, 10) is FAILED
    assert sprt(outcomes("pfpf"), STEEP, 4) is FAILED
    assert sprt(outcomes("ppfpfffff"), STEEP, 5) is PASSED


def test_the_operating_characteristic_of_a_test_that_can_be_done_by_hand() -> None:
    """Of three trials two of a kind decide: the third is run when the first two differ."""
    half = operating_characteristic(STEEP, 3, 0.5)
    assert half == OperatingCharacteristic(accepts=0.5, expected_trials=2.5)
    often = operating_characteristic(STEEP, 3, 0.9)
    assert often == pytest.approx((0.9**2 + 2 * 0.9**2 * 0.1, 2 + 2 * 0.9 * 0.1))


@pytest.mark.parametrize(("k", "rate"), [(0, 0.5), (10, 1.1), (10, -0.1)])
def test_what_cannot_be_is_refused(k: int, rate: float) -> None:
    with pytest.raises(ValueError, match="needs"):
        operating_characteristic(RULE, k, rate)
