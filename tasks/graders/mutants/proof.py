"""What was tried with the graders of a task, and what they made of it."""

from dataclasses import dataclass, field

from passgate.tasks.graders.mutants.mutants import Mutant
from passgate.tasks.graders.mutants.refusals import Refusals
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus


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
