"""How often the test of a whole suite makes the gate red."""

from dataclasses import replace

import numpy as np
import pytest
from bench.gate_trust.judging import Judge
from bench.gate_trust.regression_tests import RegressionTests as SimulatedTests
from bench.gate_trust.setting import Scale
from bench.gate_trust.worlds import World, drawn, plan_of

from passgate.tasks.forecasts.task_forecast import RegressionTests
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from tests.builders import a_baseline_task
from tests.unit.forecasts.settings import EVIDENCE, foresee, setting, tasks

WITH_SUITES = {**EVIDENCE, "blocks_on": ["golden_regression", "task_failed", "suite_regression"]}
KNOWN = [
    a_baseline_task(
        passed=57, n=60, counts={f"r{run:02}": (3 - ((run - place) % 20 in {0, 7, 13}), 3) for run in range(20)}
    )
    for place in range(20)
]
"""Three failures of each task, each in other runs than those of most others."""


def test_an_unchanged_agent_is_red_by_its_suites_within_their_share_of_alpha() -> None:
    found = foresee(setting(tasks(20), 0.95, known=KNOWN, **WITH_SUITES))
    (suite,) = (cause for cause in found.causes() if cause.rule is Rule.SUITE_REGRESSION)
    assert suite.suite is Suite.GOLDEN
    assert 0.001 < suite.chance < 0.01
    assert found.effort.confirming > foresee(setting(tasks(20), 0.95, known=KNOWN, **EVIDENCE)).effort.confirming


def test_a_small_fall_of_the_whole_agent_is_seen() -> None:
    strict = foresee(setting(tasks(20), 0.95, known=KNOWN, **{**WITH_SUITES, "regression": {"mode": "strict"}}))
    found = foresee(setting(tasks(20), 0.95, known=KNOWN, **WITH_SUITES))
    falls = found.agent_falls(strict)
    assert [fall.share for fall in falls] == [0.95, 0.9, 0.8]
    assert falls[0].red < falls[1].red < falls[2].red
    assert falls[1].red > 0.8 > 2 * foresee(setting(tasks(20), 0.95, known=KNOWN, **EVIDENCE)).red_if_all_keep(0.95)
    assert all(fall.strict_red >= fall.red for fall in falls)


def test_a_suite_of_few_tasks_and_a_gate_that_does_not_block_by_suites_have_no_test() -> None:
    for one in (
        setting(tasks(3), 0.95, known=KNOWN[:3], **WITH_SUITES),
        setting(tasks(20), 0.95, known=KNOWN, **EVIDENCE),
    ):
        assert Rule.SUITE_REGRESSION not in {cause.rule for cause in foresee(one).causes()}


def test_runs_that_differ_make_a_gate_red_by_whole_bad_runs() -> None:
    steady = setting(tasks(20), 0.95, known=KNOWN, **WITH_SUITES)
    differing = type(steady)(steady.plan, steady.tasks, spread=0.1)
    assert foresee(differing).red > 3 * foresee(steady).red
    assert foresee(differing).passed == pytest.approx(1 - foresee(differing).red)


@pytest.mark.slow
def test_agrees_with_simulated_gates() -> None:
    """Eight baselines, each beside a hundred and fifty runs that the tests of the gate judge."""
    scale, tests = Scale(8, 7), RegressionTests()
    rng = scale.generator("suites")
    world = World("0.95", (0.95,) * 20)
    # A forecast says only in words what a bound of the confirming trials costs.
    gates = replace(drawn(world, scale, rng), plan=plan_of(world, max_confirming=100.0))
    judge = Judge(gates, SimulatedTests(3, gates.plan.gate_policy.regression.max_trials))
    forecasts = []
    for gate in range(scale.gates):
        known = [gates.baseline(gate).of(task.name) for task in gates.plan.tasks]
        one = setting(gates.plan.tasks, 0.95, known=known, policy=gates.plan.policy)
        forecasts.append(foresee(one, tests=tests))
    for keeps, within in ((1.0, 0.006), (0.95, 0.05), (0.9, 0.04)):
        rates = gates.rates * np.float32(keeps)
        simulated = np.mean([judge.judged(gates.now(rates, judge.most, rng)).red for _ in range(150)])
        said = [one.red if keeps == 1 else one.red_if_all_keep(keeps) for one in forecasts]
        assert np.mean(said) == pytest.approx(simulated, abs=within), keeps
