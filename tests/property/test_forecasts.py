"""Laws of forecasts: chances are chances, and a better agent is never red more often."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import a_policy

from passgate.tasks.forecasts.chances import GateChances, GateTask
from passgate.tasks.forecasts.first_trials import (
    TrialRule,
    TrialShares,
    assumed_baseline,
    expected_trials,
    first_trials,
)
from passgate.tasks.forecasts.task_forecast import ChancesByAdmission, TaskChances
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.policy import Admission, Rule
from passgate.tasks.model.task import GateName, Metric, Suite
from passgate.tasks.stats.estimators import shrunk_rates
from passgate.tasks.stats.ratios import noise_of
from passgate.tasks.stats.regression import RegressionTest, regression_test

rates = st.floats(0, 1)
by_trials = st.sampled_from([Metric.PASS_HAT_K, Metric.PASS_AT_K, Metric.MEAN])
rules = st.builds(TrialRule, st.integers(1, 12), by_trials)


@st.composite
def trials(draw: st.DrawFn) -> TrialShares:
    parts = [draw(st.floats(0.01, 1)) * draw(st.sampled_from([0, 1])) for _ in range(4)]
    whole = sum(parts) or 1.0
    passed, violated, errors, _ = (part / whole for part in parts)
    return TrialShares(passed, violated, errors)


@given(rules, trials())
def test_what_first_trials_come_to_are_chances(rule: TrialRule, trial: TrialShares) -> None:
    found = first_trials(rule, trial)
    assert all(-1e-12 <= chance <= 1 + 1e-12 for chance in found)
    assert sum(found) == pytest.approx(1, abs=1e-9)
    assert 1 <= expected_trials(rule, trial, stops=True) <= rule.k + 1e-9


@given(rules, rates, rates)
def test_who_passes_more_often_fails_less_often(rule: TrialRule, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert first_trials(rule, TrialShares(high)).failed <= first_trials(rule, TrialShares(low)).failed + 1e-9


@given(
    rules, rates, st.integers(1, 6), st.one_of(st.none(), st.builds(Admission, passes=st.integers(1, 5), of=st.just(5)))
)
def test_assumed_baselines_are_possible(rule: TrialRule, rate: float, runs: int, admission: Admission | None) -> None:
    found = assumed_baseline(rule, rate, runs, admission)
    assert sum(chance for _, chance in found) == pytest.approx(1)
    for entry, chance in found:
        assert 0 < chance <= 1 + 1e-12
        assert 0 <= entry.passed <= entry.n == runs * rule.k
        assert entry.state in {BaselineState.GREEN, BaselineState.RED, BaselineState.UNRELIABLE}


@cache
def a_test() -> RegressionTest:
    return regression_test(58, 60, k=3, red_from=1, most=30, alpha=0.01)


@given(rates, rates)
def test_who_has_fallen_deeper_is_caught_more_often(one: float, other: float) -> None:
    low, high = sorted((one, other))
    deep, shallow = a_test().operation(low), a_test().operation(high)
    assert deep.fallen + deep.undecided >= shallow.fallen + shallow.undecided - 1e-9
    assert 0 <= deep.fallen <= 1 + 1e-9


@st.composite
def members(draw: st.DrawFn) -> list[GateTask]:
    made = []
    for _ in range(draw(st.integers(1, 8))):
        parts = [draw(st.floats(0, 1)) for _ in range(4)]
        whole = max(sum(parts), 1e-9)
        red, quiet, missing, _ = (part / whole for part in parts)
        chances = TaskChances({Rule.TASK_FAILED: red}, red + quiet, quiet, missing, 0.0, 0.0)
        made.append(GateTask(draw(st.sampled_from([Suite.GOLDEN, Suite.ADVERSARIAL])), ChancesByAdmission(chances)))
    return made


@given(members(), st.floats(0, 1), st.floats(0, 1), st.data())
def test_gates_have_chances_and_one_worse_task_makes_none_better(
    made: list[GateTask], least: float, limit: float, data: st.DataObject
) -> None:
    policy = a_policy(thresholds={"golden": least}, blocks_on=["task_failed", "threshold"])
    chances = GateChances(policy.gates[GateName.CI_MERGE], made, {Rule.COST: limit})
    assert -1e-9 <= chances.red <= 1 + 1e-9
    assert -1e-9 <= chances.passed <= 1 - chances.red + 1e-9
    index = data.draw(st.integers(0, len(made) - 1))
    old = made[index].by_admission
    worse = ChancesByAdmission(TaskChances({Rule.TASK_FAILED: 1.0}, 1.0, 0.0, 0.0, 0.0, 0.0))
    assert chances.red_with(index, old) == pytest.approx(chances.red, abs=1e-9)
    assert chances.red_with(index, worse) == pytest.approx(1)


counts = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).map(tuple), min_size=1, max_size=20)


@given(counts.filter(lambda pairs: any(n for _, n in pairs)))
def test_shrunk_rates_lie_between_a_tasks_own_and_that_of_all(pairs: list[tuple[int, int]]) -> None:
    passed, n = sum(one for one, _ in pairs), sum(one for _, one in pairs)
    of_all = (passed + 0.5) / (n + 1)
    for (own, trials), rate in zip(pairs, shrunk_rates(pairs), strict=True):
        ends = sorted((own / trials if trials else of_all, of_all))
        assert ends[0] - 1e-12 <= rate <= ends[1] + 1e-12
        assert 0 < rate < 1


of_runs = st.dictionaries(st.sampled_from("rst"), st.lists(st.floats(-1, 1e9), max_size=4))


@given(st.dictionaries(st.sampled_from("abc"), of_runs))
def test_noise_is_never_negative(figures: dict[str, dict[str, list[float]]]) -> None:
    noise = noise_of(figures)
    assert noise.drift >= 0
    assert all(spread >= 0 for spread in noise.spreads.values())
