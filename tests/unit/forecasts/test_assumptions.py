"""What is known of an agent before its gate is forecast."""

from math import exp

import pytest

from passgate.tasks.forecasts.assumptions import measured_rates, noises_of
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Metric
from tests.builders import a_baseline, a_task

TASKS = [a_task(task_id=f"t{number:02}") for number in range(2)]


class TestRates:
    def test_are_drawn_towards_each_other(self) -> None:
        baseline = a_baseline(*TASKS, passed=60, n=60)
        assert measured_rates(TASKS, baseline) == dict.fromkeys(baseline.tasks, pytest.approx(120.5 / 121))

    def test_of_scored_tasks_are_those_of_their_runs(self) -> None:
        scored = a_task(task_id="scored", metric=Metric.MEAN)
        baseline = a_baseline(scored, passed=1, n=30, runs=tuple("abcdefghij"), runs_green=9)
        assert measured_rates([scored], baseline) == {"golden/scored": pytest.approx(9.5 / 11)}

    def test_of_a_new_task_are_the_mean(self) -> None:
        found = measured_rates(TASKS, a_baseline(TASKS[0], passed=59, n=60))
        assert found["golden/t01"] == found["golden/t00"] == pytest.approx(59.5 / 61)

    def test_of_nothing_are_none(self) -> None:
        assert measured_rates(TASKS, Baseline(branch="main")) == {}


def test_times_and_costs_have_each_their_noise() -> None:
    steps = (exp(-1.0), 1.0, exp(1.0))
    times = {"later": tuple(exp(4.0) * step for step in steps), "first": steps}
    noises = noises_of(a_baseline(TASKS[0], wall_times=times, costs={"first": (2.0, 2.0)}))
    assert noises[Rule.LATENCY].spreads == {"golden/t00": pytest.approx(1.0)}
    assert noises[Rule.LATENCY].drift == pytest.approx((8 - 1 / 3) ** 0.5)
    assert noises[Rule.COST] == ({"golden/t00": 0.0}, 0.0, 0)
