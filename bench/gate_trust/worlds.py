"""Agents of known pass rates: their runs at the baseline, and those that are judged, drawn at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from tests.builders import a_plan, a_policy, a_task

from bench.gate_trust.rates import read_rates
from bench.gate_trust.setting import RUNS, TASKS, Scale, shipped_gate
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.run import Plan

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
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
class Gates:
    """Some gates of a world before the run that is judged. Each has a baseline of its own draw."""

    world: World
    plan: Plan
    rates: Floats
    before: Booleans
    """By gate, task, run (the newest first) and trial, whether it passed."""
    shift: Floats
    """Of the run that is judged."""

    def now(self, rates: Floats, most: int, rng: np.random.Generator) -> Booleans:
        """The trials of a run of these rates, as many of each task, by gate and task."""
        shifted = np.clip(rates + self.shift[:, None], 0, 1)
        return np.asarray(rng.random((*rates.shape, most), dtype=np.float32) < shifted[..., None])

    def baseline(self, gate: int) -> Baseline:
        """What the gate knows of its tasks, as `baseline_of` would pool it."""
        runs = self.before[gate]
        entries = {task.name: _entry(runs[place]) for place, task in enumerate(self.plan.tasks)}
        return Baseline(branch="main", tasks=entries)


def _entry(runs: Booleans) -> BaselineTask:
    if not len(runs):
        return BaselineTask(state=BaselineState.NEW)
    greens = [bool(run.all()) for run in runs]
    passed = [int(run.sum()) for run in runs]
    names = run_names(len(runs))
    return BaselineTask.model_construct(
        state=state_of(greens),
        runs=tuple(names),
        runs_green=sum(greens),
        passed=sum(passed),
        n=runs.size,
        counts={name: (one, runs.shape[1]) for name, one in zip(names, passed, strict=True)},
        newest=tuple(runs[:, ::-1].reshape(-1).tolist()),
    )


def run_names(runs: int) -> Sequence[str]:
    """The ids of runs, the newest first."""
    return [f"20260101T{runs - run:06}Z-ci_merge-0a0b" for run in range(runs)]


def drawn(world: World, scale: Scale, rng: np.random.Generator, runs: int = RUNS) -> Gates:
    """As many gates of a world, each with so many runs at the baseline."""
    shape = (scale.gates, world.tasks)
    drawn_rates = np.broadcast_to(np.array(world.rates), shape) if world.rates else rng.beta(8, 1, shape)
    rates: Floats = drawn_rates.astype(np.float32)
    shifts = rng.normal(0, 1, (scale.gates, runs + 1)).astype(np.float32) * np.float32(world.run_effect)
    of_runs = np.clip(rates[:, :, None] + shifts[:, None, 1:], 0, 1)
    before = rng.random((*shape, runs, world.k), dtype=np.float32) < of_runs[..., None]
    return Gates(world, plan_of(world), rates, np.asarray(before), shifts[:, 0])


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
