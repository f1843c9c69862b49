"""What a gate will do under one policy, what its limits add, and what a verdict costs."""

import numpy as np
import pytest

from passgate.tasks.forecasts.setting_forecast import NO_LIMITS, SettingForecast, SimulatedLimits, simulate_limits
from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.forecast import Effort
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName, Metric, Suite
from tests.builders import a_baseline_task, a_policy, a_task, in_two_runs
from tests.unit.forecasts.settings import EVIDENCE, STRICT, foresee, setting, tasks

GREEN = a_baseline_task(passed=60, n=60)
THIN = a_baseline_task(passed=3, n=3)


def test_the_seeds_gate_is_red_45_percent_of_the_time_and_the_shipped_one_is_not() -> None:
    found = foresee(setting(tasks(20), 0.99, **STRICT))
    assert found.red == pytest.approx(0.4528, abs=0.02)
    assert found.inconclusive == 0
    found = foresee(setting(tasks(20), 0.99, **EVIDENCE))
    assert found.red < 0.02
    assert found.effort.confirming < 0.2 * 60


def both_of(rates: float | list[float], known: list[BaselineTask]) -> list[SettingForecast]:
    """Of a strict gate, and of one that asks for evidence."""
    return [foresee(setting(tasks(len(known)), rates, known=known, **one)) for one in (STRICT, EVIDENCE)]


def test_catching_is_beside_the_strict_rule() -> None:
    strict, evidence = both_of(0.99, [GREEN] * 20)
    to_90, to_70, to_50 = evidence.catches(strict)
    assert [catch.pass_rate for catch in (to_90, to_70, to_50)] == [0.9, 0.7, 0.5]
    assert to_70.strict_mean == pytest.approx(1 - 0.7**3, abs=0.005)
    assert to_70.mean >= 0.9 * to_70.strict_mean
    assert to_50.mean >= 0.95 * to_50.strict_mean
    assert to_90.mean < to_70.mean < to_50.mean


def test_the_worst_task_is_the_one_that_is_caught_least() -> None:
    strict, evidence = both_of(0.99, [GREEN, a_baseline_task(passed=50, n=60), GREEN])
    catch = evidence.catches(strict)[1]
    assert (catch.worst_task, catch.tasks) == ("golden/t1", 3)
    assert catch.worst < catch.mean


def test_a_task_whose_baseline_is_too_thin_for_a_verdict_cannot_block_by_falling() -> None:
    warning = {**EVIDENCE, "regression": {"undecided": "warn", "alpha": 0.01}}
    assert foresee(setting(tasks(3), 0.99, known=[GREEN, THIN, GREEN], **warning)).able == [0, 2]


def test_tasks_that_cannot_fall_so_far_or_cannot_block_are_not_counted() -> None:
    red = a_baseline_task(state="red before too", passed=1, n=60)
    strict, found = both_of([0.99, 0.6, 0.99], [GREEN, GREEN, red])
    assert [catch.tasks for catch in found.catches(strict)] == [1, 1, 2]
    none = foresee(setting(tasks(2), 0.99, **{**EVIDENCE, "blocks_on": []}))
    (catch, *_) = none.catches(strict)
    assert (catch.tasks, catch.mean, catch.worst, catch.worst_task, catch.strict_mean) == (0, None, None, "", None)


def test_causes_share_the_red() -> None:
    found = foresee(setting(tasks(3), [0.9, 1.0, 0.99], known=GREEN, **STRICT))
    first, second = found.causes()
    assert (first.task, first.rule) == ("golden/t0", Rule.GOLDEN_REGRESSION)
    assert first.chance == pytest.approx(0.271, abs=0.02)
    assert second.task == "golden/t2"
    assert first.share + second.share == pytest.approx(1)
    (rule,) = found.rules()
    assert (rule.rule, rule.share) == (Rule.GOLDEN_REGRESSION, pytest.approx(1))
    rules = {**STRICT, "thresholds": {"golden": 1.0}, "blocks_on": ["threshold"]}
    (cause,) = foresee(setting(tasks(2), 0.9, known=GREEN, **rules)).causes()
    assert (cause.rule, cause.suite, cause.task) == (Rule.THRESHOLD, Suite.GOLDEN, "")
    assert cause.chance == pytest.approx(1 - 0.9**6, abs=0.02)


def test_the_curve_goes_through_the_false_red_and_rises() -> None:
    strict, found = both_of(0.95, [GREEN] * 5)
    points = found.curve(strict, [1.0, 0.95, 0.7, 0.5, 0.0])
    assert points[1].red == pytest.approx(found.red, abs=0.04)
    assert points[1].strict_red == pytest.approx(strict.red, abs=0.04)
    assert [point.red for point in points] == sorted(point.red for point in points)
    assert points[-1].red == pytest.approx(1, abs=0.01)


def test_a_gate_that_blocks_on_nothing_is_never_red() -> None:
    found = foresee(setting(tasks(2), 0.9, **{**STRICT, "blocks_on": []}))
    assert [point.red for point in found.curve(found, [1.0, 0.5])] == [0, 0]
    assert found.causes() == found.rules() == []


PRICED = a_baseline_task(passed=59, n=60, costs=in_two_runs(0.1, 0.3), wall_times=in_two_runs(4.0, 8.0))


def effort(*of, rate: float = 0.9, known: BaselineTask | list | None = PRICED, **gate) -> Effort:
    return foresee(setting(of, rate, known=known, **gate)).effort


def test_planned_trials_are_all_k_and_confirming_ones_come_beside_them() -> None:
    found = effort(*tasks(2), a_task(task_id="x", k=5), **STRICT)
    assert (found.planned, found.confirming, found.saved, found.trials) == (11, 0, 0, 11)
    found = effort(*tasks(3), **EVIDENCE)
    assert found.confirming > 0
    assert found.trials == 9 + found.confirming


def test_curtailment_saves_what_comes_after_what_decides() -> None:
    expected = 1 + 0.9 + 0.81
    saved = effort(*tasks(2), **{**STRICT, "curtailment": True}).saved
    assert saved == pytest.approx(2 * (3 - expected), abs=0.05)
    assert effort(*tasks(2), **{**EVIDENCE, "curtailment": True}).saved == 0
    task = a_task(suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K)
    gate = {**STRICT, "suites": ["open_ended"], "curtailment": True}
    assert effort(task, **gate).saved == pytest.approx(3 - (1 + 0.1 + 0.01), abs=0.05)


def test_money_and_time_are_those_of_the_baselines_means() -> None:
    found = effort(*tasks(2), **STRICT)
    assert found.cost == pytest.approx(6 * 0.2)
    assert found.seconds == pytest.approx(6 * 6.0 / 8)
    one = setting(tasks(2), 0.9, known=PRICED, plan={"request": RunRequest(jobs=2)}, **STRICT)
    assert foresee(one).effort.seconds == pytest.approx(6 * 6.0 / 2)
    unknown = a_baseline_task(passed=59, n=60)
    assert effort(*tasks(2), known=[PRICED, unknown], **STRICT).cost == pytest.approx(6 * 0.2)
    assert effort(*tasks(2), known=unknown, **STRICT).cost is None
    assert effort(*tasks(2), known=None, **STRICT).seconds is None


BOUNDS = np.array([0.9, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5])
KNOWN = SimulatedLimits(latency=BOUNDS, latency_p95_seconds=2.0, cost=BOUNDS, cost_per_trial=1.0)


NO_FLOORS = {"latency_floor_ms": 0, "cost_floor_usd": 0}


def gate(limits: dict[str, float], blocks_on: tuple[str, ...] = ("latency", "cost")) -> GatePolicy:
    return a_policy(limits=NO_FLOORS | limits, blocks_on=blocks_on).gates[GateName.CI_MERGE]


def chances(policy: GatePolicy) -> dict[Rule, float]:
    return {rule: float(runs.mean()) for rule, runs in KNOWN.exceeded(policy).items()}


def test_a_bound_must_exceed_its_limit_where_it_blocks() -> None:
    assert chances(gate({"latency_p95_increase_pct": 15})) == {Rule.LATENCY: 3 / 8}
    assert chances(gate({"cost_increase_pct": 20})) == {Rule.LATENCY: 0.0, Rule.COST: 2 / 8}
    assert chances(gate({"latency_p95_increase_ms": 500}))[Rule.LATENCY] == 2 / 8
    both = {"latency_p95_increase_ms": 500, "latency_p95_increase_pct": 15}
    assert chances(gate(both))[Rule.LATENCY] == 3 / 8
    limits = {"latency_p95_increase_pct": 15, "cost_increase_pct": 10}
    found = chances(gate(limits | {"latency_floor_ms": 500, "cost_floor_usd": 0.25}))
    assert found == {Rule.LATENCY: 2 / 8, Rule.COST: 2 / 8}
    assert chances(gate(limits, ("cost",))).keys() == {Rule.COST}
    assert NO_LIMITS.exceeded(gate(limits)) == {}


@pytest.mark.parametrize(("count", "known"), [(7, False), (8, True)])
def test_tasks_with_figures_at_the_baseline_are_pairs(count: int, known: bool) -> None:
    before = a_baseline_task(wall_times=in_two_runs(1.0, 2.0), costs={})
    assumed = setting(tasks(count), known=before).tasks
    found = simulate_limits(assumed, gates=100, seed=1)
    assert (found.latency is not None) is known
    assert found.cost is None
    assert found.latency_p95_seconds == pytest.approx(2.0, abs=0.1)


def test_assumed_baselines_and_runs_that_share_no_task_cannot_be_compared() -> None:
    """Nor can figures of 0."""
    before = [a_baseline_task(wall_times={f"r{number}": (1.0, 2.0)}, costs=in_two_runs(0.0)) for number in range(8)]
    assumed = setting(tasks(8), known=before).tasks
    found = simulate_limits(assumed, gates=100, seed=1)
    assert (found.latency, found.cost) == (None, None)
    found = simulate_limits(setting(tasks(20)).tasks, gates=100, seed=1)
    assert (found.latency, found.cost) == (None, None)
