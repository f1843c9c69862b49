"""What graders answer."""

from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Usage


class ViolationRule(StrEnum):
    """The two vetoes of every gate."""

    FORBIDDEN_TOOL = "forbidden_tool"
    SAFETY_VIOLATION = "safety_violation"


class Violation(Frozen):
    """Something that the agent must never do, and did."""

    rule: ViolationRule
    message: str


class Check(Frozen):
    """One thing that a grader looked at."""

    passed: bool
    message: str
    """What was expected and what was found."""


class Grade(Frozen):
    """One grader's answer for one trial. With an `error` it has no score: it could not measure."""

    name: str
    type: str
    score: float | None
    """From 0 to 1."""
    passed: bool
    checks: tuple[Check, ...] = ()
    violations: tuple[Violation, ...] = ()
    fatal: str = ""
    """Why the trial fails whatever else is said of it: something required was not met."""
    members: tuple["Grade", ...] = ()
    """The grades that this one is made of."""
    votes: tuple[float, ...] = ()
    """The score of each vote, where a judge was asked several times."""
    usage: Usage = Usage()
    """What the judge used."""
    error: str | None = None
    transient: bool = False
    """Whether the error may be gone at the next attempt."""
