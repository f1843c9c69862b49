"""Trials drawn at random: of the run that is judged, and of the runs at the baseline."""

from dataclasses import replace

import numpy as np
import pytest

from passgate.tasks.forecasts.drawn_trials import Draws, drawn_baseline, setting_seed, shifted_rates
from passgate.tasks.gates.guards import run_drift
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.task import Metric
from tests.builders import a_baseline_task, a_task
from tests.unit.forecasts.settings import EVIDENCE, STRICT, setting, tasks


def test_more_trials_begin_with_the_same_ones() -> None:
    draws = Draws((1, 2), runs=5, tasks=3)
    first = draws.outcomes(4).copy()
    assert (draws.outcomes(9)[:4] == first).all()
    assert (draws.outcomes(4) == first).all()
    assert not (Draws((1, 3), runs=5, tasks=3).outcomes(4) == first).any()


def test_the_seed_is_that_of_the_tasks_and_the_agent_whatever_the_policy_is() -> None:
    one = setting(tasks(3), **EVIDENCE)
    assert setting_seed(one, 0) == setting_seed(setting(tasks(3), 0.5, **STRICT), 0) != setting_seed(one, 1)
    assert setting_seed(one, 0) != setting_seed(setting([a_task(task_digest="other")], **EVIDENCE), 0)


@pytest.mark.parametrize("rate", [0.5, 0.95])
def test_runs_that_differ_pass_as_often_on_average(rate: float) -> None:
    shifts = np.random.default_rng(1).normal(0, 1, 100_000).astype(np.float32)
    rates = shifted_rates([rate, 1.0], shifts, 0.05)
    assert rates[:, 0].mean() == pytest.approx(rate, abs=0.001)
    assert rates[:, 0].std() > 0.03
    assert (shifted_rates([rate], shifts, 0.0) == np.float32(rate)).all()


def test_a_baseline_has_the_runs_that_the_policy_pools_and_keeps_what_is_known() -> None:
    known = a_baseline_task(passed=58, n=60)
    baseline = drawn_baseline(setting(tasks(2), 0.95, known=[known, None], **EVIDENCE), np.random.default_rng(0))
    first, second = baseline.tasks.values()
    assert first is known
    assert (second.n, len(second.runs), len(second.counts), len(second.newest)) == (60, 20, 20, 60)
    assert second.passed == sum(second.newest) == sum(passed for passed, _ in second.counts.values())


def test_runs_make_a_task_green_by_the_rule_of_its_metric() -> None:
    def state(metric: Metric, rate: float) -> BaselineState:
        one = setting([a_task(metric=metric)], rate, **EVIDENCE)
        return drawn_baseline(one, np.random.default_rng(0)).of("golden/say-yes").state

    assert [state(metric, 0.6) for metric in (Metric.PASS_HAT_K, Metric.PASS_AT_K)] == ["red before too", "green"]
    assert [state(Metric.MEAN, rate) for rate in (0.05, 0.95)] == ["red before too", "green"]


def test_runs_that_differ_give_baselines_that_drift() -> None:
    steady = setting(tasks(20), 0.9, **EVIDENCE)

    def drifting(spread: float) -> int:
        one, rng = replace(steady, spread=spread), np.random.default_rng(0)
        return sum(run_drift(drawn_baseline(one, rng).tasks.values()).deviation > 0 for _ in range(20))

    assert drifting(0.0) < 4
    assert drifting(0.1) > 16
