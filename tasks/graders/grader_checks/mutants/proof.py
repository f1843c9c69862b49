"""What was tried with the graders of a task, and what they made of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from passgate.tasks.errors import Problem
from passgate.tasks.graders.grader_checks.mutants.mutants import Mutant
from passgate.tasks.graders.grader_checks.mutants.refusals import Refusals
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus

PlaceInGrader = tuple[str | int, ...]
"""Keys and indices from a grader's options to one of their values."""
Locate = Callable[[EvalTask, int | None, str, PlaceInGrader], Problem]
"""Says where in its file a task has a grader, counted from 0 (`None`: all of them), with a message."""


@dataclass(frozen=True)
class Tried:
    """One transcript and what the graders made of it."""

    what: str
    status: TrialStatus
    reason: str = ""
    grades: tuple[Grade, ...] = ()
    transcript: Transcript = field(default_factory=Transcript)


@dataclass(frozen=True)
class Mutated:
    """A mutant and what came of it."""

    mutant: Mutant
    tried: Tried
    counts: bool
    """Whether correct graders must kill it."""


@dataclass(frozen=True)
class Proof:
    """Everything that was tried with the graders of a task."""

    task: EvalTask
    locate: Locate
    good: Tried | None = None
    """What must pass; `None` where the task has nothing of the kind."""
    derived: bool = False
    """Whether that was put together from the graders' options."""
    bad: tuple[Tried, ...] = ()
    """What must fail."""
    mutated: tuple[Mutated, ...] = ()
    refusals: Refusals | None = None
    refused: tuple[Tried, Tried] | None = None
    """The refusal that names what it refuses, and the one that does not."""
