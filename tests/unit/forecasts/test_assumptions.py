"""What is known of an agent before its gate is forecast."""

from math import exp

import pytest

from passgate.tasks.forecasts.assumptions import measured_rates, noises_of
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import EvalTask, Metric
from tests.builders import a_baseline, a_task

TASKS = [a_task(task_id=f"t{number:02}") for number in range(2)]


SCORED = a_task(task_id="scored", metric=Metric.MEAN)
TEN_RUNS = {"runs": tuple("abcdefghij"), "runs_green": 9}


@pytest.mark.parametrize(
    ("tasks", "baseline", "rate"),
    [
        pytest.param(TASKS, a_baseline(*TASKS, passed=60, n=60), 120.5 / 121, id="drawn towards each other"),
        pytest.param([SCORED], a_baseline(SCORED, passed=1, n=30, **TEN_RUNS), 9.5 / 11, id="of scores, by runs"),
        pytest.param(TASKS, a_baseline(TASKS[0], passed=59, n=60), 59.5 / 61, id="a new one has the mean"),
    ],
)
def test_the_rates_of_tasks(tasks: list[EvalTask], baseline: Baseline, rate: float) -> None:
    assert measured_rates(tasks, baseline) == {task.name: pytest.approx(rate) for task in tasks}
    assert measured_rates(tasks, Baseline(branch="main")) == {}


def test_times_and_costs_have_each_their_noise() -> None:
    steps = (exp(-1.0), 1.0, exp(1.0))
    times = {"later": tuple(exp(4.0) * step for step in steps), "first": steps}
    noises = noises_of(a_baseline(TASKS[0], wall_times=times, costs={"first": (2.0, 2.0)}))
    assert noises[Rule.LATENCY].spreads == {"golden/t00": pytest.approx(1.0)}
    assert noises[Rule.LATENCY].drift == pytest.approx((8 - 1 / 3) ** 0.5)
    assert noises[Rule.COST] == ({"golden/t00": 0.0}, 0.0, 0)
