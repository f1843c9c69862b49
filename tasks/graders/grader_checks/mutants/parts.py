"""Of which parts a grader is made, and what each of them looks at."""

from collections.abc import Iterator, Sequence
from typing import Final

from passgate.tasks.model.assertions import CodeGrader, LlmGrader, Rubrics, ScriptAssertion, Unavailable
from passgate.tasks.model.graders import (
    Composite,
    DeterministicTests,
    Grader,
    LlmRubric,
    StateCheck,
    StaticAnalysis,
    Turns,
)

_STATE: Final = (DeterministicTests, StaticAnalysis, StateCheck)
_JUDGES: Final = (LlmRubric, LlmGrader, Rubrics)
_PROGRAMS: Final = (CodeGrader, ScriptAssertion, Unavailable)


def parts_of(grader: Grader) -> Iterator[Grader]:
    """The graders that one is made of, at any depth; itself when it is made of none. A composite whose score a program
    or a judge gives is among its parts.
    """
    if not isinstance(grader, Composite | Turns):
        yield grader
        return
    if isinstance(grader, Composite) and grader.aggregator.type in {"code_grader", "llm_grader"}:
        yield grader
    for member in _members(grader):
        yield from parts_of(member)


def _members(grader: Composite | Turns) -> Sequence[Grader]:
    if isinstance(grader, Composite):
        return grader.assertions
    return [*(member for turn in grader.turns for member in turn.assertions), *grader.conversation]


def sees_only_the_state(part: Grader) -> bool:
    """Whether it looks at nothing that the agent said or called."""
    return isinstance(part, _STATE)


def is_judged(part: Grader) -> bool:
    """Whether a judge model is asked."""
    return isinstance(part, _JUDGES) or (isinstance(part, Composite) and part.aggregator.type == "llm_grader")


def is_cheap(part: Grader) -> bool:
    """Whether grading takes neither a judge nor a program."""
    return not is_judged(part) and not isinstance(part, (*_STATE, *_PROGRAMS, Composite))
