"""What `passgate doctor` and `passgate check-graders` find."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from passgate.tasks.model.base import Frozen


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Symptom:
    """One thing that was looked at."""

    subject: str
    """What it belongs to: `machine`, `files`, `judge`, or an agent."""
    what: str
    state: State
    found: str
    remedy: str = ""
    """What to do about it; empty where all is well."""


class Fault(StrEnum):
    """What can be wrong with graders."""

    CANNOT_FAIL = "cannot_fail"
    """A grader passes whatever the agent does."""
    ASKS_TOO_LITTLE = "asks_too_little"
    """An agent that does not do the work passes."""
    NO_KNOWN_GOOD = "no_known_good"
    """The task has nothing that must pass, and its graders do not tell enough to derive it."""
    KNOWN_GOOD_FAILS = "known_good_fails"
    KNOWN_BAD_PASSES = "known_bad_passes"
    MUTANT_SURVIVES = "mutant_survives"
    """A grader asks something of the answer, and passes an empty one."""
    REFUSAL_FAILS = "refusal_fails"
    """A refusal scores lower for naming what it refuses."""
    NEVER_FAILED = "never_failed"
    """Nothing bad that was tried has failed a grader, or one of its checks, though the task has counterexamples."""


class GraderFinding(Frozen):
    """One fault, with its place."""

    fault: Fault
    file: str
    line: int
    column: int
    path: str
    """Where in the document, as in `graders[1]`."""
    graders: tuple[str, ...]
    """The labels of the graders that it is about."""
    message: str
    remedy: str


class CheckCounts(Frozen):
    """How many of some transcripts came out as they must."""

    right: int = 0
    of: int = 0
    """Those that were measured."""
    unmeasured: int = 0


class GraderCheck(Frozen):
    """The graders of one task, put to the test."""

    suite: str
    task_id: str
    file: str
    line: int
    known_good: Literal["passed", "derived", "failed", "not measured", "none"]
    """`derived`: what passes was put together from the graders' own options, for the task ships none."""
    known_bad: CheckCounts = CheckCounts()
    """Doing nothing, and the counterexamples: right when they fail."""
    mutants: CheckCounts = CheckCounts()
    """Right when the task fails, or for a refusal when its score is not lower; mutants that may pass do not count."""
    graders: CheckCounts = CheckCounts()
    """Right when something bad has failed it."""
    findings: tuple[GraderFinding, ...] = ()
    unmeasured: tuple[str, ...] = ()
    """What should have been measured and was not, and why."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and no fault: mutants that pass, mutants that were not measured."""
