"""The sequential probability ratio test."""

from math import log

import pytest

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import SequentialTest
from passgate.tasks.stats.decision import OperatingCharacteristic, in_order, operating_characteristic, sprt

ACCEPT, REJECT, OPEN = TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED
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
        ("", OPEN),
        ("pp", OPEN),
        ("ppp", ACCEPT),
        ("fff", REJECT),
        ("ppfp", OPEN),
        ("ppfpp", ACCEPT),
        ("ffpff", REJECT),
        ("pppfffffff", ACCEPT),
        ("fffppppppp", REJECT),
    ],
)
def test_it_decides_when_a_bound_is_reached_and_keeps_to_it(letters: str, answer: TaskState) -> None:
    assert sprt(outcomes(letters), STEEP, 100) is answer


def test_the_bounds_are_walds() -> None:
    pass_ratio = log(0.95 / 0.7)
    assert 9 * pass_ratio < log(0.95 / 0.05) <= 10 * pass_ratio
    assert (sprt([True] * 9, RULE, 100), sprt([True] * 10, RULE, 100)) == (OPEN, ACCEPT)
    assert (sprt(outcomes("f"), RULE, 100), sprt(outcomes("ff"), RULE, 100)) == (OPEN, REJECT)


def test_each_risk_moves_its_own_bound() -> None:
    careful_to_fail = SequentialTest(accept=0.8, reject=0.2, alpha=0.001)
    careful_to_pass = SequentialTest(accept=0.8, reject=0.2, beta=0.001)
    assert (sprt([True] * 3, careful_to_fail, 100), sprt([False] * 3, careful_to_fail, 100)) == (ACCEPT, OPEN)
    assert (sprt([True] * 3, careful_to_pass, 100), sprt([False] * 3, careful_to_pass, 100)) == (OPEN, REJECT)


@pytest.mark.parametrize(
    ("letters", "answer"),
    [("ppfpf", ACCEPT), ("ppffp", ACCEPT), ("ffppf", REJECT), ("pf", OPEN), ("pfpf", OPEN), ("ppf", OPEN)],
)
def test_the_last_trial_ends_it_at_the_nearer_hypothesis(letters: str, answer: TaskState) -> None:
    assert sprt(outcomes(letters), STEEP, 5) is answer


def test_it_is_decided_once_the_trials_to_come_cannot_turn_it() -> None:
    """Nine passes do not reach the bound, but with a failure as the tenth the task is nearer to `accept` too."""
    assert (sprt([True] * 8, RULE, 10), sprt([True] * 9, RULE, 10)) == (OPEN, ACCEPT)
    assert sprt(outcomes("pppppppff"), RULE, 10) is REJECT
    assert sprt(outcomes("pfpf"), STEEP, 4) is REJECT
    assert sprt(outcomes("ppfpfffff"), STEEP, 5) is ACCEPT


@pytest.mark.parametrize(
    ("letters", "answer"),
    [
        ("-", OPEN),
        ("pp-", OPEN),
        ("pp-pp", ACCEPT),
        ("p-p", OPEN),
        ("-fff", OPEN),
        ("-ffff", REJECT),
        ("fff-", REJECT),
        ("f-ppp-", OPEN),
    ],
)
def test_it_is_open_while_a_trial_that_was_not_measured_could_turn_it(letters: str, answer: TaskState) -> None:
    assert sprt(outcomes(letters), STEEP, 100) is answer


def test_outcomes_in_the_order_of_their_trials() -> None:
    assert in_order([(2, False), (0, True), (7, True)], 4) == (True, None, False, None)


def test_the_operating_characteristic_of_a_test_that_can_be_done_by_hand() -> None:
    """Of three trials two of a kind decide: the third is run when the first two differ."""
    half = operating_characteristic(STEEP, 3, 0.5)
    assert half == OperatingCharacteristic(accepts=0.5, expected_trials=2.5)
    often = operating_characteristic(STEEP, 3, 0.9)
    assert often == pytest.approx((0.9**2 + 2 * 0.9**2 * 0.1, 2 + 2 * 0.9 * 0.1))


@pytest.mark.parametrize(("rate", "accepts"), [(0.0, 0.0), (1.0, 1.0)])
def test_what_is_certain_is_certain(rate: float, accepts: float) -> None:
    assert operating_characteristic(RULE, 10, rate).accepts == accepts


@pytest.mark.parametrize(("k", "rate"), [(0, 0.5), (10, 1.1), (10, -0.1)])
def test_what_cannot_be_is_refused(k: int, rate: float) -> None:
    with pytest.raises(ValueError, match="needs"):
        operating_characteristic(RULE, k, rate)
