"""The answer of a gate, with every reason and the digest of every input."""

from datetime import datetime
from enum import StrEnum

from passgate.tasks.errors import ExitCode
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision
from passgate.tasks.model.task import GateName, Suite


class Decision(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode[self.name]


class Reason(Frozen):
    """One thing that speaks against passing. Only blocking reasons decide; the others are for the reader."""

    rule: Rule
    blocking: bool
    message: str
    suite: Suite | None = None
    task_id: str | None = None
    trials: tuple[int, ...] = ()
    file: str | None = None
    line: int | None = None


class Comparison(Frozen):
    """A limit against the baseline: the plain figures and the paired ratio with its one-sided 95 % bound."""

    name: str
    unit: str
    baseline: float
    current: float
    pairs: int
    ratio: float | None
    """Geometric mean over the tasks of current / baseline."""
    ratio_lower_bound: float | None
    limit: str


class Inputs(Frozen):
    """Digests of all that went into a verdict."""

    policy: str
    tasks: str
    graders: str
    trials: str
    agent: str
    """Of the agent's spec: what it is, its model, its endpoints."""
    prices: str
    baseline_runs: tuple[str, ...] = ()
    passgate_version: str


class Verdict(Frozen):
    """The verdict of one run; verdict.json is this model, and every report is a view of it."""

    schema_version: int = 1
    run_id: str
    gate: GateName
    decision: Decision
    exit_code: int
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    measurement: Measurement
    agent: str
    judge: str = ""
    """Who marked the rubrics: `recorded replies`, a model's name, or empty when nobody had to."""
    revision: Revision = Revision()
    inputs: Inputs
    started_at: datetime
    judged_at: datetime

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        passed, measured = (sum(getattr(task, name) for task in self.measurement.tasks) for name in ("passed", "n"))
        blocking = sum(reason.blocking for reason in self.reasons)
        detail = {
            Decision.PASS: f"{passed} of {measured} trials passed",
            Decision.FAIL: f"{blocking} blocking reason{'s' if blocking != 1 else ''}",
            Decision.INCONCLUSIVE: "the evidence is not complete",
        }[self.decision]
        return f"{self.gate} {self.decision}: {detail}"
