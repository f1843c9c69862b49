"""The smallest change of policy."""

import pytest

from passgate.tasks.forecasts.advice import Improved, improve
from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.setting_forecast import NO_LIMITS
from passgate.tasks.forecasts.task_forecast import RegressionTests
from tests.builders import a_baseline_task
from tests.unit.forecasts.settings import EVIDENCE, STRICT, foresee, setting, tasks

GREEN, THIN = a_baseline_task(passed=59, n=60), a_baseline_task(passed=18, n=18)
FEW = {"regression": {"mode": "evidence", "max_trials": 9}}


def improved(one: Setting, target: float = 0.02) -> Improved:
    tests = RegressionTests()
    return improve(foresee(one, NO_LIMITS, tests), lambda changed: foresee(changed, NO_LIMITS, tests), target)


def whats(found: Improved) -> list[str]:
    return [change.what for change in found.changes]


def test_strict_gates_become_trustworthy_by_evidence() -> None:
    found = improved(setting(tasks(20), 0.99, known=GREEN, **STRICT))
    assert whats(found) == ["regression.mode: strict -> evidence"]
    assert found.forecast.red <= 0.02


def test_the_first_that_reaches_the_target_is_the_smallest() -> None:
    one = setting(tasks(6), 0.9, known=THIN, **{**EVIDENCE, **FEW})
    assert foresee(one).red > 0.1
    assert whats(improved(one, target=foresee(one).red - 1e-6)) == ["regression.undecided: block -> warn"]


def test_where_no_single_change_does_two_may() -> None:
    rules = {**STRICT, "thresholds": {"golden": 1.0}, "blocks_on": ["golden_regression", "threshold"]}
    found = improved(setting(tasks(20), 0.99, known=GREEN, **rules))
    assert whats(found) == ["regression.mode: strict -> evidence", "thresholds.golden: 1 -> 0.8"]
    assert found.forecast.red <= 0.02


def test_where_nothing_reaches_it_the_least_red_is_told() -> None:
    one = setting(tasks(20), 0.5, known=GREEN, **STRICT)
    found = improved(one)
    assert found.changes
    assert 0.02 < found.forecast.red < foresee(one).red


def test_where_nothing_helps_nothing_is_changed() -> None:
    rules = {**STRICT, "blocks_on": ["safety_violation"]}
    one = setting(tasks(2), 0.5, known=GREEN, task={"violations": {"safety_violation": 0.3}, "safety": True}, **rules)
    found = improved(one)
    assert (found.changes, found.forecast.red) == ((), pytest.approx(foresee(one).red))
