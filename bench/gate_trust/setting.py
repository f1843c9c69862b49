"""What is simulated: a gate of golden tasks under a policy, before and after a change of the agent."""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from zlib import crc32

import numpy as np

from passgate.tasks.formats.loading import load_policy
from passgate.tasks.model.policy import GatePolicy, Regression
from passgate.tasks.model.task import GateName
from passgate.tasks.stats.regression import FALL

REPOSITORY = Path(__file__).parents[2]
SHIPPED = load_policy(REPOSITORY / "gates.yaml")
TASKS = 20
RUNS = SHIPPED.baseline.runs


@dataclass(frozen=True)
class Scale:
    """How much is simulated."""

    gates: int
    seed: int

    def generator(self, *names: object) -> np.random.Generator:
        """Random numbers of their own for each simulation, whatever else is simulated."""
        return np.random.default_rng([self.seed, crc32(" ".join(map(str, names)).encode())])


@dataclass(frozen=True)
class Fall:
    """What the pass rate of a task falls to, from at least `above`."""

    to: float
    above: float

    def strictly_caught(self, k: int) -> float:
        """How often a task that has fallen fails any of its first k trials."""
        return 1 - self.to**k


SLIGHT = Fall(0.9, 0.95)
"""Not a fall by the gate's own measure."""
FALLS = (Fall(0.5, 0.5 / FALL), Fall(0.7, 0.7 / FALL), SLIGHT)


@dataclass(frozen=True)
class Setting:
    """Tasks with their true pass rates, their trials in a run, and how many runs are at the baseline."""

    rates: tuple[float, ...]
    k: int = 3
    runs: int = RUNS

    def strict_red(self) -> float:
        """How often any task fails."""
        return 1 - prod(rate**self.k for rate in self.rates)

    def can_fall(self, fall: Fall) -> tuple[int, ...]:
        """The tasks for which it is one."""
        return tuple(task for task, before in enumerate(self.rates) if before >= fall.above - 1e-9)


def alike(rate: float, *, k: int = 3, runs: int = RUNS) -> Setting:
    """Twenty tasks of one rate."""
    return Setting((rate,) * TASKS, k, runs)


def shipped_gate() -> GatePolicy:
    """The merge gate's policy as it is shipped."""
    return SHIPPED.gates[GateName.CI_MERGE]


def shipped_regression() -> Regression:
    """How the shipped merge gate holds a failed task against its baseline."""
    return shipped_gate().regression
