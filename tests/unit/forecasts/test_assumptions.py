"""What is known of an agent before its gate is forecast."""

import numpy as np
import pytest

from passgate.tasks.forecasts.assumptions import RunCounts, centre, effect_spread, measured_rates
from passgate.tasks.model.baseline import Baseline
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


def history(rate: float, spread: float, seed: int, *, tasks: int = 20, runs: int = 20, k: int = 3) -> list[RunCounts]:
    """Tasks of an agent with one pass rate, whose runs differ by a normal shift of it."""
    rng = np.random.default_rng(seed)
    rates = np.clip(rate + rng.normal(0, spread, runs), 0, 1)
    passed = rng.binomial(k, rates, (tasks, runs))
    return [RunCounts(passed.mean() / k, {str(run): (int(one), k) for run, one in enumerate(row)}) for row in passed]


@pytest.mark.parametrize("rate", [0.99, 0.95, 0.8])
def test_a_healthy_history_shows_no_difference(rate: float) -> None:
    assert [effect_spread(history(rate, 0.0, seed)) for seed in range(30)] == [0.0] * 30


def test_runs_that_differ_are_told() -> None:
    found = [effect_spread(history(0.9, 0.1, seed)) for seed in range(10)]
    assert all(found)
    assert np.mean(found) == pytest.approx(0.1, abs=0.03)
    assert effect_spread(history(0.9, 0.3, 1, runs=1)) == 0.0
    assert effect_spread([]) == 0.0


@pytest.mark.parametrize("rate", [0.3, 0.95, 0.99])
def test_the_mean_over_the_runs_is_the_rate_of_the_task(rate: float) -> None:
    shifts = np.random.default_rng(1).normal(0, 0.05, 200_000)
    assert np.clip(centre(rate, 0.05) + shifts, 0, 1).mean() == pytest.approx(rate, abs=0.001)
