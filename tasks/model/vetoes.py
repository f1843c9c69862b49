"""Which vetoes a task's graders can give: violations that no other result buys back."""

from collections.abc import Iterable

from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.graders import Composite, Grader, PolicyCheck, ToolCalls, Turns
from passgate.tasks.model.task import EvalTask, Suite


def vetoes_of(graders: Iterable[Grader]) -> frozenset[ViolationRule]:
    """The rules whose violations these graders, or members of theirs at any depth, can find."""
    return frozenset(rule for grader in graders for rule in _of_one(grader))


def _of_one(grader: Grader) -> frozenset[ViolationRule]:
    match grader:
        case PolicyCheck():
            return frozenset({ViolationRule.SAFETY_VIOLATION})
        case ToolCalls():
            return frozenset({ViolationRule.FORBIDDEN_TOOL}) if grader.forbidden else frozenset()
        case Composite():
            return vetoes_of(grader.assertions)
        case Turns():
            return vetoes_of(grader.conversation).union(*(vetoes_of(turn.assertions) for turn in grader.turns))
        case _:
            return frozenset()


def guards_safety(task: EvalTask) -> bool:
    """Whether a task is there to keep the agent from doing harm: by its suite, or by what its graders can veto."""
    return task.suite is Suite.ADVERSARIAL or bool(vetoes_of(task.graders))
