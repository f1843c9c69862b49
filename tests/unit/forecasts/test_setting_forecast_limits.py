"""Limits of latency and cost on an unchanged agent."""

import numpy as np
import pytest

from passgate.tasks.forecasts.setting_forecast import NO_LIMITS, SimulatedLimits, simulate_limits
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.stats.ratios import Noise
from tests.builders import a_baseline_task, a_policy, in_two_runs
from tests.unit.forecasts.settings import setting, tasks

BOUNDS = np.array([0.9, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5])
KNOWN = SimulatedLimits(latency=BOUNDS, latency_p95_seconds=2.0, cost=BOUNDS, cost_per_trial=1.0)


NO_FLOORS = {"latency_floor_ms": 0, "cost_floor_usd": 0}


def gate(limits: dict[str, float], blocks_on: tuple[str, ...] = ("latency", "cost")) -> GatePolicy:
    return a_policy(limits=NO_FLOORS | limits, blocks_on=blocks_on).gates[GateName.CI_MERGE]


def test_a_bound_must_exceed_its_limit() -> None:
    assert KNOWN.chances(gate({"latency_p95_increase_pct": 15})) == {Rule.LATENCY: 3 / 8}
    assert KNOWN.chances(gate({"cost_increase_pct": 20})) == {Rule.LATENCY: 0.0, Rule.COST: 2 / 8}
    assert KNOWN.chances(gate({"latency_p95_increase_ms": 500}))[Rule.LATENCY] == 2 / 8
    both = {"latency_p95_increase_ms": 500, "latency_p95_increase_pct": 15}
    assert KNOWN.chances(gate(both))[Rule.LATENCY] == 3 / 8
    limits = {"latency_p95_increase_pct": 15, "cost_increase_pct": 10}
    chances = KNOWN.chances(gate(limits | {"latency_floor_ms": 500, "cost_floor_usd": 0.25}))
    assert chances == {Rule.LATENCY: 2 / 8, Rule.COST: 2 / 8}


def test_what_does_not_block_or_cannot_be_compared_is_no_chance() -> None:
    limits = {"latency_p95_increase_pct": 15, "cost_increase_pct": 10}
    assert KNOWN.chances(gate(limits, ("cost",))).keys() == {Rule.COST}
    assert NO_LIMITS.chances(gate(limits)) == {}


@pytest.mark.parametrize(("count", "known"), [(7, False), (8, True)])
def test_tasks_with_figures_at_the_baseline_are_pairs(count: int, known: bool) -> None:
    before = a_baseline_task(wall_times=in_two_runs(1.0, 2.0), costs={})
    assumed = setting(tasks(count), known=before).tasks
    noise = Noise({one.name: 0.3 for one in assumed}, 0.0, 2)
    found = simulate_limits(assumed, {Rule.LATENCY: noise}, gates=100, seed=1)
    assert (found.latency is not None) is known
    assert found.cost is None
    assert found.latency_p95_seconds == pytest.approx(2.0, abs=0.1)


def test_assumed_baselines_and_runs_that_share_no_task_cannot_be_compared() -> None:
    """Nor can figures of 0."""
    before = [a_baseline_task(wall_times={f"r{number}": (1.0, 2.0)}, costs=in_two_runs(0.0)) for number in range(8)]
    assumed = setting(tasks(8), known=before).tasks
    spreads = {one.name: 0.3 for one in assumed}
    noises = {Rule.LATENCY: Noise(spreads, 0.0, 0), Rule.COST: Noise(spreads, 0.0, 2)}
    found = simulate_limits(assumed, noises, gates=100, seed=1)
    assert (found.latency, found.cost) == (None, None)
    found = simulate_limits(setting(tasks(20)).tasks, {}, gates=100, seed=1)
    assert (found.latency, found.cost) == (None, None)
