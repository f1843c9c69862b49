"""What is left of a task's failures in runs that its own test does not block, beside every course of its trials."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest

from passgate.tasks.forecasts.unblocked_tasks import TaskTest, unblocked_task, untested
from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.regression import regression_test

K, MOST, SIZES = 3, 12, (3, 4, 5, 6)
TEST = TaskTest(regression_test(57, 60, k=K, red_from=1, most=MOST, alpha=0.05), red_from=1, undecided_blocks=True)


@pytest.mark.parametrize("rate", [0.95, 0.6, 0.2])
def test_agrees_with_every_course_of_the_trials(rate: float) -> None:
    first, later, unblocked = defaultdict(float), defaultdict(float), 0.0
    for outcomes in product([True, False], repeat=MOST):
        chance = float(np.prod([rate if passed else 1 - rate for passed in outcomes]))
        course = TEST.test.follow(outcomes)
        failed = outcomes[:K].count(False)
        if failed and course.finding in {Finding.FALLEN, Finding.UNDECIDED}:
            continue
        unblocked += chance
        first[failed] += chance
        later[outcomes[3:4].count(False)] += chance
    found = unblocked_task(TEST, rate, SIZES)
    assert found.first == pytest.approx([first[failed] / unblocked for failed in range(K + 1)])
    assert found.layers[0].failures == pytest.approx([later[failed] / unblocked for failed in range(2)])


def test_layers_know_the_failures_before_them_and_the_trials_of_the_tasks_own_test() -> None:
    assert all(layer.covariance < 0 for layer in unblocked_task(TEST, 0.8, SIZES).layers)
    assert all(layer.covariance == 0 for layer in untested(0.8, SIZES).layers)
    own = [layer.own for layer in unblocked_task(TEST, 0.8, SIZES).layers]
    assert own[0] <= 1 - 0.8**3
    assert own == sorted(own, reverse=True)
    assert own[-1] > 0
