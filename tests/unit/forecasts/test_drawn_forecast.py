"""The forecast of a gate whose tasks have no baseline yet: it is that of the baselines that they will have."""

import numpy as np
import pytest
from bench.gate_trust.setting import Scale
from bench.gate_trust.worlds import World, drawn

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.drawn_baselines import DRAWS, with_drawn_baselines
from passgate.tasks.forecasts.task_forecast import RegressionTests
from passgate.tasks.gates.guards import run_drift
from passgate.tasks.model.policy import Rule
from tests.builders import a_baseline_task
from tests.unit.forecasts.settings import EVIDENCE, STRICT, foresee, setting, tasks

WITH_SUITES = {**EVIDENCE, "blocks_on": ["golden_regression", "task_failed", "suite_regression"]}


@pytest.mark.slow
def test_an_assumed_agent_is_red_as_often_as_with_the_baselines_of_a_bench() -> None:
    """The bench draws by itself what each gate has for a baseline."""
    scale = Scale(20, 3)
    gates = drawn(World("0.99", (0.99,) * 20), scale, scale.generator("drawn"))
    policy, tests = gates.plan.policy, RegressionTests()
    said = foresee(setting(gates.plan.tasks, 0.99, policy=policy), tests=tests)
    with_each = []
    for gate in range(scale.gates):
        known = [gates.baseline(gate).of(task.name) for task in gates.plan.tasks]
        with_each.append(foresee(setting(gates.plan.tasks, 0.99, known=known, policy=policy), tests=tests))
    reds, confirming = [one.red for one in with_each], [one.confirming for one in with_each]
    error = np.hypot(np.std(reds) / np.sqrt(len(reds)), said.red_error)
    assert 0 < said.red_error < 0.003
    assert said.red == pytest.approx(np.mean(reds), abs=3 * error)
    assert said.confirming == pytest.approx(np.mean(confirming), rel=0.15)
    # Tests of tasks find some unchanged ones fallen, and not only those of suites.
    of_tasks = sum(cause.chance for cause in said.causes() if cause.rule is not Rule.SUITE_REGRESSION)
    assert of_tasks > 0.001


def test_a_forecast_with_baselines_is_computed_and_has_no_error_and_those_of_a_history_stay_as_they_are() -> None:
    known = a_baseline_task(passed=58, n=60)
    assert foresee(setting(tasks(6), 0.95, known=known, **WITH_SUITES)).red_error == 0.0
    for one in with_drawn_baselines(setting(tasks(6), 0.95, known=[known, *[None] * 5], **WITH_SUITES)):
        assert one.tasks[0].known is known
        assert all(task.known is not None for task in one.tasks)


@pytest.mark.parametrize("gate", [STRICT, EVIDENCE], ids=["strict", "few tasks"])
def test_baselines_are_drawn_only_where_tasks_tell_of_each_other(gate: dict[str, object]) -> None:
    count = 20 if gate is STRICT else 4
    assert with_drawn_baselines(setting(tasks(count), 0.95, **gate)) == []


def test_runs_that_differ_give_baselines_that_drift() -> None:
    steady = setting(tasks(20), 0.9, **WITH_SUITES)
    differing = Setting(steady.plan, steady.tasks, spread=0.1)

    def drifting(one: Setting) -> int:
        baselines = ([task.known for task in drawn.tasks if task.known] for drawn in with_drawn_baselines(one))
        return sum(run_drift(baseline).deviation > 0 for baseline in baselines)

    assert drifting(steady) < DRAWS / 5
    assert drifting(differing) > DRAWS * 4 / 5
