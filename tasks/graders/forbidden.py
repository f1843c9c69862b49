"""Which tool calls a task forbids, for whoever can keep an agent from making them."""

from collections.abc import Callable, Iterable, Iterator

from passgate.tasks.graders.patterns import call_matches
from passgate.tasks.graders.policy_check import denies
from passgate.tasks.model.graders import Composite, Grader, PolicyCheck, ToolCalls, Turns
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import ToolCall


def forbidden_by(task: EvalTask) -> Callable[[ToolCall], bool]:
    """Whether a grader of the task, or a member of one, would find a call to be a violation, by its tool and arguments
    alone.
    """
    graders = list(_of_every_call(task.graders))
    tool_rules = [grader for grader in graders if isinstance(grader, ToolCalls)]
    policies = [grader for grader in graders if isinstance(grader, PolicyCheck)]

    def forbidden(call: ToolCall) -> bool:
        return any(call_matches(pattern, call) for rules in tool_rules for pattern in rules.forbidden) or any(
            denies(policy, call) for policy in policies
        )

    return forbidden


def finds_violations(task: EvalTask) -> bool:
    """Whether a grader of the task, or a member of one, can find a violation in any call."""
    return any(
        isinstance(grader, PolicyCheck) or (isinstance(grader, ToolCalls) and bool(grader.forbidden))
        for grader in _of_every_call(task.graders)
    )


def _of_every_call(graders: Iterable[Grader]) -> Iterator[Grader]:
    """Graders and their members at any depth. Those of a single turn are not among them: they see the calls of that
    turn alone, and in another one the call may be right.
    """
    for grader in graders:
        yield grader
        if isinstance(grader, Composite):
            yield from _of_every_call(grader.assertions)
        elif isinstance(grader, Turns):
            yield from _of_every_call(grader.conversation)
