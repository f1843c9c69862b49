"""What is simulated, and under which policy: the merge gate as it is shipped."""

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from passgate.tasks.formats.loading import load_policy
from passgate.tasks.model.policy import GatePolicy, Regression
from passgate.tasks.model.task import GateName

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

    def at_most(self, gates: int) -> "Scale":
        """The same with so many gates at the most."""
        return Scale(min(self.gates, gates), self.seed)


def shipped_gate() -> GatePolicy:
    """The merge gate's policy as it is shipped."""
    return SHIPPED.gates[GateName.CI_MERGE]


def shipped_regression() -> Regression:
    """How the shipped merge gate holds a failed task against its baseline."""
    return shipped_gate().regression
