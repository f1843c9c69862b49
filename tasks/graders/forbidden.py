"""Which tool calls a task forbids, for whoever can keep an agent from making them."""

from collections.abc import Callable

from passgate.tasks.graders.patterns import call_matches
from passgate.tasks.graders.policy_check import denies
from passgate.tasks.model.graders import PolicyCheck, ToolCalls
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import ToolCall


def forbidden_by(task: EvalTask) -> Callable[[ToolCall], bool]:
    """Whether a grader of the task would find a call to be a violation, by its tool and arguments alone."""
    tool_rules = [grader for grader in task.graders if isinstance(grader, ToolCalls)]
    policies = [grader for grader in task.graders if isinstance(grader, PolicyCheck)]

    def forbidden(call: ToolCall) -> bool:
        return any(call_matches(pattern, call) for rules in tool_rules for pattern in rules.forbidden) or any(
            denies(policy, call) for policy in policies
        )

    return forbidden
