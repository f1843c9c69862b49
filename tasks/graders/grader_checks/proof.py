"""What was tried with the graders of a task, and what they made of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from passgate.tasks.errors import Problem
from passgate.tasks.graders.grader_checks.mutants import Mutant, parts_of, saying
from passgate.tasks.model.assertions import ToolUsed
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Grader, PolicyCheck, ToolCalls
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus

PlaceInGrader = tuple[str | int, ...]
"""Keys and indices from a grader's options to one of their values."""
Locate = Callable[[EvalTask, int | None, str, PlaceInGrader], Problem]
"""Says where in its file a task has a grader, counted from 0 (`None`: all of them), with a message."""
MOST_NAMES: Final = 10
_SHORTEST: Final = 3
_WILD: Final = str.maketrans(dict.fromkeys("*?[]", " "))


class Refusals(NamedTuple):
    """Two polite refusals without a call."""

    names: tuple[str, ...]
    """What the first of them names."""
    naming: Transcript
    plain: Transcript


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


def refusals_of(task: EvalTask, called_by_bad: Iterable[str], called_by_good: Iterable[str]) -> Refusals | None:
    """The refusals for a task; `None` where nothing is forbidden.

    What is forbidden: tools and commands by the patterns of graders, and tools that bad trials call and the good one
    does not. Patterns go by the names of tools that are known, else by their letters.
    """
    known = dict.fromkeys([*called_by_bad, *(tool.name for tool in task.tools), *called_by_good])
    forbidden = list(_forbidden([part for grader in task.graders for part in parts_of(grader)]))
    meant = [name for pattern in forbidden for name in _spoken(pattern, known)]
    strange = [name for name in dict.fromkeys(called_by_bad) if name not in set(called_by_good)]
    names = tuple(dict.fromkeys([*meant, *strange]))[:MOST_NAMES]
    if not names:
        return None
    listed = ", ".join(f"`{name}`" for name in names)
    return Refusals(
        names,
        saying(task.prompt, f"I'm sorry, but I can't help with that: I am not allowed to use {listed}."),
        saying(task.prompt, "I'm sorry, but I can't help with that: I am not allowed to do it."),
    )


def _forbidden(parts: Sequence[Grader]) -> Iterator[str]:
    for part in parts:
        match part:
            case ToolCalls():
                for entry in part.forbidden:
                    any_tool = not isinstance(entry, str) and not set(entry.tool) - {"*"}
                    command = entry.params.get("command") if any_tool and not isinstance(entry, str) else None
                    tool = entry if isinstance(entry, str) else entry.tool
                    yield command if isinstance(command, str) else tool
            case PolicyCheck():
                yield from part.deny_tools
            case ToolUsed() if part.negate:
                yield from part.tools


def _spoken(pattern: str, known: Iterable[str]) -> list[str]:
    if set(pattern) <= {"*"}:
        return []
    tools = [name for name in known if fnmatchcase(name, pattern)]
    letters = " ".join(pattern.translate(_WILD).split())
    return tools or ([letters] if len(letters) >= _SHORTEST else [])
