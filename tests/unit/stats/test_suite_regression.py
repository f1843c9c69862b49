"""The test of a whole suite against its baseline."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.suite_regression import Member, SuiteRegressionTest, suite_regression_test, trials_at

GATES = 600


def of_members(members: Sequence[Member], *, drift: float = 0.0, most: int = 60) -> SuiteRegressionTest:
    return suite_regression_test(members, alpha=0.01, drift=drift, room=(most, 100.0))


def a_test(**options: Any) -> SuiteRegressionTest:
    return of_members([Member(57, 60, 3)] * 20, **options)


def played(test: SuiteRegressionTest, rate: float, rng: random.Random) -> Finding:
    failed = trials = 0
    for look in range(test.looks):
        more = 20 * trials_at(look, 3) - trials
        trials, failed = trials + more, failed + sum(rng.random() > rate for _ in range(more))
        if (finding := test.conclude(look, failed)) is not Finding.UNFINISHED:
            return finding
    raise AssertionError("the last look decides")


def shares(test: SuiteRegressionTest, rate: float) -> float:
    rng = random.Random(5)
    return sum(played(test, rate, rng) is Finding.FALLEN for _ in range(GATES)) / GATES


def test_an_unchanged_suite_is_hardly_ever_found_fallen_and_a_worse_one_is() -> None:
    test = a_test()
    assert shares(test, 0.95) < 0.02
    assert shares(test, 0.85) > 0.94
    assert shares(of_members([Member(594, 600, 3)] * 20), 0.95) > 0.6


def test_the_order_of_the_tasks_does_not_matter() -> None:
    members = [Member(passed, 60, k) for passed, k in ((60, 3), (55, 3), (40, 5), (58, 10), (60, 5), (51, 3))]
    assert of_members(members) == of_members(members[::-1])


def test_how_soon_a_suite_fits() -> None:
    """A small one not always at once, and a large one only well below a fall of ten points."""
    assert of_members([Member(57, 60, 3)] * 5).fits_below[0] == 1
    test = of_members([Member(57, 60, 10)] * 60)
    # A fall of ten points gives 90 failures of 600, an unchanged suite 30.
    assert 30 < test.fits_below[0] < 40


def test_at_every_look_it_is_decided_or_goes_on_and_at_the_last_it_is_decided() -> None:
    test = a_test()
    for fits, fallen in zip(test.fits_below, test.fallen_from, strict=True):
        assert fits <= fallen
    assert test.fits_below[-1] == test.fallen_from[-1]
    assert all(first <= then for first, then in pairwise(test.fallen_from[:-1]))


@pytest.mark.parametrize(
    ("options", "looks"), [({}, 7), ({"most": 5}, 3), ({"most": 3}, 1), ({"drift": 0.05}, 1)], ids=str
)
def test_tasks_get_no_more_trials_than_the_policy_allows_and_runs_that_drift_one_look(
    options: dict[str, float], looks: int
) -> None:
    assert a_test(**options).looks == looks
    assert a_test(drift=0.05).fallen_from[0] > a_test().fallen_from[0]


def test_tasks_that_always_failed_are_no_fall() -> None:
    test = of_members([Member(0, 60, 3)] * 10 + [Member(60, 60, 3)] * 10)
    assert test.conclude(0, 30) is Finding.FITS
    assert test.conclude(0, 45) is Finding.FALLEN


@pytest.mark.parametrize(("look", "k", "trials"), [(0, 3, 3), (1, 3, 4), (6, 3, 9), (1, 4, 6), (1, 10, 14)])
def test_each_look_takes_a_third_more(look: int, k: int, trials: int) -> None:
    assert trials_at(look, k) == trials
