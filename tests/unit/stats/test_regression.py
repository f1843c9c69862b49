"""The sequential test of a failed task against its pooled baseline."""

import random
from itertools import product

import pytest
from bench.gate_trust.operation import operation, regression_test

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.regression import FALL, MISSED, Before, RegressionTest

OF_ONE = 1 - 0.98 ** (1 / 20)
"""What a gate of twenty tasks allows to one, when it may be red for nothing 2 % of the time."""


def of(
    passed: int = 60, n: int = 60, *, k: int = 3, red_from: int = 1, most: int = 60, alpha: float = OF_ONE
) -> RegressionTest:
    return regression_test(passed, n, k=k, red_from=red_from, most=most, alpha=alpha)


@pytest.mark.parametrize(
    ("n", "failed", "finding"),
    [
        *((3, 0, Finding.FITS), (3, 1, Finding.UNFINISHED), (3, 3, Finding.FALLEN), (20, 1, Finding.FITS)),
        (20, 10, Finding.FALLEN),
    ],
)
def test_green_fits_and_one_failure_is_no_proof_and_many_are(n: int, failed: int, finding: Finding) -> None:
    assert of().conclude(n, failed) is finding
    assert of().next_trials(3, 0) == 0


def test_under_the_or_rule_only_all_failures_are_red() -> None:
    test = of(k=5, red_from=5)
    assert [test.conclude(5, failed) for failed in range(5)] == [Finding.FITS] * 5
    assert test.conclude(5, 5) is Finding.FALLEN


def test_its_end_is_at_the_most_trials_which_are_at_least_k() -> None:
    test = of(3, 3, most=10)
    assert test.conclude(10, 4) is Finding.UNDECIDED
    assert test.conclude(12, 4) is Finding.UNDECIDED
    assert test.next_trials(10, 4) == 0
    test = of(k=5, most=3)
    assert test.most == 5
    assert test.conclude(5, 2) is not Finding.UNFINISHED


@pytest.mark.parametrize(
    ("baseline", "counts", "message"),
    [
        *(((60, 60), counts, "k <= n") for counts in ((2, 0), (3, 4), (3, -1))),
        *((baseline, (3, 0), "passed <= n") for baseline in ((0, 3), (4, 3), (0, 0))),
    ],
)
def test_counts_that_cannot_be_are_refused(baseline: tuple[int, int], counts: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of(*baseline).conclude(*counts)
    with pytest.raises(ValueError, match="needs 3 trials"):
        of().follow([False, True])


@pytest.mark.parametrize(("passed", "n"), [(60, 60), (57, 60), (50, 60), (9, 9), (3, 3), (199, 200)])
def test_more_failures_never_speak_for_the_task(passed: int, n: int) -> None:
    test = of(passed, n)
    order = [Finding.FITS, Finding.UNFINISHED, Finding.UNDECIDED, Finding.FALLEN]
    for trials in range(3, 61):
        found = [order.index(test.conclude(trials, failed)) for failed in range(trials + 1)]
        assert found == sorted(found)


@pytest.mark.parametrize(("passed", "n"), [(60, 60), (57, 60), (45, 60), (30, 30), (9, 9)])
@pytest.mark.parametrize("alpha", [0.0005, OF_ONE, 0.02])
def test_an_unchanged_task_is_blocked_no_more_often_than_allowed(passed: int, n: int, alpha: float) -> None:
    """Over the rates that the baseline leaves possible: the mean over the distribution that the test goes by."""
    test = of(passed, n, alpha=alpha)
    seed = random.Random(7)
    rates = [seed.betavariate(*Before(passed, n).unchanged()) for _ in range(100)]
    blocked = sum(operation(test, rate).fallen for rate in rates) / len(rates)
    assert blocked <= alpha * 2


@pytest.mark.parametrize(("passed", "n", "cleared"), [(60, 60, MISSED), (120, 120, MISSED), (57, 60, 0.17)])
def test_of_fallen_tasks_that_fail_at_first_few_are_cleared(passed: int, n: int, cleared: float) -> None:
    """At 57 of 60 the upper end of the price of a miss ends the test sooner."""
    rate = FALL * passed / n
    assert operation(of(passed, n), rate).fits - rate**3 <= cleared * (1 - rate**3) * 1.01


@pytest.mark.parametrize("rate", [0.6, 0.3, 0.0])
def test_a_thin_baseline_clears_no_fall_either(rate: float) -> None:
    assert operation(of(3, 3), rate).fits - rate**3 < 0.1


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.7, 0.95, 1.0])
def test_the_figures_are_those_of_every_course_of_a_short_test(rate: float) -> None:
    test, chances, trials = of(30, 30, most=8, alpha=0.01), dict.fromkeys(Finding, 0.0), 0.0
    for course in product((True, False), repeat=8):
        chance, n = rate ** sum(course) * (1 - rate) ** (8 - sum(course)), test.k
        while (found := test.follow(course[:n])).finding is Finding.UNFINISHED:
            n += test.next_trials(found.n, found.failed)
        chances[found.finding] += chance
        trials += chance * n
    figures = operation(test, rate)
    shares = [chances[finding] for finding in (Finding.FALLEN, Finding.FITS, Finding.UNDECIDED)]
    assert [figures.fallen, figures.fits, figures.undecided] == pytest.approx(shares)
    assert figures.trials == pytest.approx(trials)


def test_so_many_passes_or_failures_decide_and_one_fewer_do_not() -> None:
    test = of()
    more = test.next_trials(3, 1)
    assert test.conclude(3 + more, 1) is Finding.FITS
    assert test.conclude(3 + more - 1, 1) is Finding.UNFINISHED
    test = of(18, 18)
    more = test.next_trials(3, 3)
    assert test.conclude(3 + more, 3 + more) is not Finding.UNFINISHED
    assert test.conclude(3 + more - 1, 3 + more - 1) is Finding.UNFINISHED


def test_a_round_of_an_unsteady_task_that_fails_is_at_most_half_of_what_has_been_run() -> None:
    """It would take dozens of failures to show a fall, and two passes clear the task."""
    test = regression_test(20, 80, k=4, red_from=1, most=60, alpha=0.0002)
    assert test.conclude(4 + 30, 4 + 30) is Finding.UNFINISHED
    assert test.next_trials(4, 4) == 2
    assert test.next_trials(20, 20) == 10


def test_where_neither_end_is_to_be_hoped_for_no_trial_is_spent() -> None:
    """Three trials at the baseline are too few to block by, and a task that never passes cannot be cleared."""
    assert of(3, 3).conclude(6, 6) is Finding.UNDECIDED
    assert operation(of(3, 3), 0.0).trials < 6
    assert operation(of(60, 60), 0.0).undecided == 0
    assert operation(of(57, 60), 0.95).undecided < 0.001


@pytest.mark.parametrize(("passed", "n"), [(60, 60), (57, 60), (9, 9)])
def test_trials_after_the_end_of_the_test_change_nothing(passed: int, n: int) -> None:
    test, seed = of(passed, n), random.Random(3)
    for _ in range(300):
        outcomes = [seed.random() < 0.8 for _ in range(70)]
        course = test.follow(outcomes)
        assert course.finding is not Finding.UNFINISHED
        assert test.follow(outcomes[: course.n]) == course
        assert course.failed == outcomes[: course.n].count(False)
        if course.n > test.k:
            assert test.follow(outcomes[: course.n - 1]).finding is Finding.UNFINISHED


class TestTheFiguresOfTheIssue:
    """Twenty golden tasks of three trials, sixty trials of each at the baseline."""

    def test_at_99_percent_the_gate_is_hardly_red_and_costs_little(self) -> None:
        found = operation(of(59, 60), 0.99)
        assert 1 - (1 - found.fallen - found.undecided) ** 20 < 0.02
        assert found.trials / 3 < 1.2

    @pytest.mark.parametrize(("fallen_to", "share"), [(0.5, 0.95), (0.7, 0.88)])
    @pytest.mark.parametrize("passed", [60, 59, 57])
    def test_a_fallen_task_is_caught_nearly_as_often_as_strictly(
        self, fallen_to: float, share: float, passed: int
    ) -> None:
        found = operation(of(passed, 60), fallen_to)
        assert found.fallen + found.undecided >= share * (1 - fallen_to**3)
