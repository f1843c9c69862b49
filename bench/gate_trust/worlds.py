"""Agents of known pass rates: their runs at the baseline, and those that are judged, drawn at random."""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from tests.builders import a_plan, a_policy, a_task

from bench.gate_trust.rates import read_rates
from bench.gate_trust.setting import RUNS, TASKS, Scale, shipped_gate
from passgate.tasks.commands.forecast import forecast_setting
from passgate.tasks.forecasts.assumptions import Basis, Setting
from passgate.tasks.forecasts.drawn_trials import Draws, drawn_baseline
from passgate.tasks.forecasts.simulated_gate import SimulatedGate, TaskTests
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
AIRLINE = Path(__file__).with_name("airline.json")
"""Fifty rates with the distribution that a published benchmark of an agent has: pass^1 to pass^4 of its four trials."""
RUN_EFFECT = 0.05


@dataclass(frozen=True)
class World:
    """An agent: what its tasks pass, and by how much whole runs differ."""

    name: str
    rates: tuple[float, ...] = ()
    """Of every task; empty where each gate draws them from Beta(8, 1)."""
    k: int = 3
    run_effect: float = 0.0
    """Standard deviation of what a run adds to the rate of all its tasks."""

    @property
    def tasks(self) -> int:
        return len(self.rates) or TASKS

    @property
    def is_alike(self) -> bool:
        return len(set(self.rates)) == 1

    def mean_rates(self, rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What tasks of these rates pass on average, when each run shifts them and they stay between 0 and 1."""
        chances = (np.arange(1000) + 0.5) / 1000
        shifts = np.array([NormalDist().inv_cdf(chance) for chance in chances]) * self.run_effect
        found: npt.NDArray[np.float64] = np.clip(rates[:, None] + shifts, 0, 1).mean(axis=1)
        return found

    def __str__(self) -> str:
        effect = f", run effects of sd {self.run_effect:g}" if self.run_effect else ""
        return f"{self.name}, {self.tasks} tasks x {self.k}{effect}"


def worlds(run_effect: float = 0.0) -> list[World]:
    """The four that the gate is held to."""
    airline = tuple(read_rates(AIRLINE).values())
    return [
        World("0.99", (0.99,) * TASKS, run_effect=run_effect),
        World("0.95", (0.95,) * TASKS, run_effect=run_effect),
        World("Beta(8, 1)", run_effect=run_effect),
        World("airline", airline, k=4, run_effect=run_effect),
    ]


@dataclass(frozen=True)
class Judged:
    """What came of some gates, by gate and task."""

    blocked: Booleans
    """The task blocks."""
    trials: Integers
    """That were run, the first k included."""
    suite_fallen: Booleans
    """By gate alone: the suite has fallen, and no task has shown it."""

    @property
    def red(self) -> Booleans:
        return np.asarray(self.blocked.any(axis=1) | self.suite_fallen)


@dataclass(frozen=True)
class Gates:
    """Some gates of a world before the run that is judged. Each has a baseline of its own draw."""

    world: World
    rates: Floats
    """By gate and task."""
    settings: list[Setting]
    baselines: list[Baseline]
    draws: list[Draws]
    bounded: list[SimulatedGate]
    """With as many confirming trials as the shipped policy lets a run spend."""
    free: list[SimulatedGate]
    """With all the trials that the tests ask for."""
    tests: TaskTests

    def judged(self, rates: Floats, *, bounded: bool = True) -> Judged:
        """Judge a run of each gate whose tasks have these rates; of the first gates, where rates are fewer."""
        gates = self.bounded if bounded else self.free
        played = list(zip(gates, self.draws, rates, strict=False))
        self.tests.prepare(key for gate, draws, one in played for key in gate.needed_tests(one, draws))
        runs = [gate.run(one, draws) for gate, draws, one in played]
        blocked, trials = np.concatenate([run.blocked for run in runs]), np.concatenate([run.trials for run in runs])
        fallen = np.concatenate([run.suites_fallen.any(axis=1) for run in runs])
        return Judged(blocked, trials, fallen & ~blocked.any(axis=1))


def drawn(world: World, scale: Scale, rng: np.random.Generator, runs: int = RUNS) -> Gates:
    """Draw gates of a world, each with so many runs at the baseline."""
    shape = (scale.gates, world.tasks)
    # What a run shifts is cut off at 0 and 1, which moves the mean.
    known = world.mean_rates(np.array(world.rates)) if world.rates else np.empty(0)
    rates = (
        np.tile(known, (scale.gates, 1)) if world.rates else np.array([*map(world.mean_rates, rng.beta(8, 1, shape))])
    )
    shipped, free = (setting_of_world(world, plan_of(world, **one)) for one in ({}, {"max_confirming": 100.0}))
    tests = TaskTests()
    gates = Gates(world, rates.astype(np.float32), [], [], [], [], [], tests)
    for gate, of_gate in enumerate(rates.tolist()):
        tasks = tuple(replace(task, rate=rate) for task, rate in zip(shipped.tasks, of_gate, strict=True))
        setting = replace(shipped, tasks=tasks)
        baseline = drawn_baseline(setting, rng, runs)
        gates.settings.append(setting)
        gates.baselines.append(baseline)
        gates.draws.append(Draws((int(rng.integers(1 << 32)), gate), 1, world.tasks))
        gates.bounded.append(SimulatedGate(setting, baseline, tests))
        gates.free.append(SimulatedGate(replace(free, tasks=tasks), baseline, tests))
    return gates


def setting_of_world(world: World, plan: Plan) -> Setting:
    """Return an agent whose tasks have no baseline. Where the rates are drawn, the quantiles of their distribution,
    Beta(8, 1), stand for them.
    """
    rates = np.array(world.rates or ((np.arange(world.tasks) + 0.5) / world.tasks) ** (1 / 8))
    given = {task.name: float(rate) for task, rate in zip(plan.tasks, world.mean_rates(rates), strict=True)}
    return forecast_setting(plan, Basis(Baseline(branch="main"), given, "assumed", spread=world.run_effect))


def plan_of(world: World, **regression: float) -> Plan:
    """A merge gate of golden tasks as shipped, without limits; with changes of its regression."""
    shipped = shipped_gate()
    policy = a_policy(
        suites=["golden"],
        limits={},
        regression=shipped.regression.model_copy(update=regression),
        **{name: getattr(shipped, name) for name in ("blocks_on", "admission")},
    )
    tasks = [a_task(task_id=f"t{number:03}", k=world.k) for number in range(world.tasks)]
    return a_plan(*tasks, policy=policy)
