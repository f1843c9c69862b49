"""Which steps a trial took, as AgentV's `trajectory:*` assertions see them.

Calls of three shells that say their command are commands there and no tools, so that assertions on tools do not see
them. What is known of the calls is all there is: a transcript without any counts as one without calls.
"""

from typing import Final

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.trajectories.trajectory_steps import (
    Step,
    arguments_message,
    as_expected,
    command_names,
    considered,
    count_holds,
    count_message,
    decided,
    in_sequence,
    matches,
    named_like,
    sequence_message,
    steps_of,
    tools_used,
    used_message,
    without,
)
from passgate.tasks.model.assertions import AssertionOptions, StepCount, ToolArguments, ToolSequence, ToolUsed
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.json_values import MISSING, strictly_equal
from passgate.tasks.model.transcript import ToolCall

COMMAND_TOOLS: Final = frozenset({"exec_command", "local_shell", "shell"})
"""In lower case."""


async def grade_tool_used_as_agentv(options: ToolUsed, evidence: Evidence) -> Grade:
    """1 when each of the tools was called as often as said, else 0; negated, 1 when none of them was."""
    calls = _tools(options, evidence)
    message = used_message(options, calls)
    return decided(options, evidence.transcript, tools_used(options, calls), message, certain=True)


async def grade_tool_sequence_as_agentv(options: ToolSequence, evidence: Evidence) -> Grade:
    """1 when the tools were called in this order, else 0."""
    calls = _tools(options, evidence)
    message = sequence_message(options, calls)
    return decided(options, evidence.transcript, in_sequence(options, calls), message, certain=True)


async def grade_tool_arguments_as_agentv(options: ToolArguments, evidence: Evidence) -> Grade:
    """1 when the tool was called with these arguments, else 0. An argument of a call that is as in `defaults` counts as
    not given, also where it is expected.
    """
    calls = [call for call in _tools(options, evidence) if named_like(call.tool, options.tool)]
    holds = any(_as_expected(options, call) for call in calls)
    return decided(options, evidence.transcript, holds, arguments_message(options, calls), certain=True)


async def grade_step_count_as_agentv(options: StepCount, evidence: Evidence) -> Grade:
    """1 when the number of steps is from `min` to `max`, else 0."""
    steps = steps_of(evidence.transcript, COMMAND_TOOLS)
    count = sum(options.kind in {"any", _kind(step)} and matches(step, options.pattern) for step in steps)
    holds = count_holds(options, count)
    return decided(options, evidence.transcript, holds, count_message(options, count), certain=True)


def _kind(step: Step) -> str:
    """The one kind of a step; a shell without a command is a tool."""
    if "command" in step.kinds:
        return "command" if len(step.names) > 1 else "tool"
    return next(iter(step.kinds))


def _tools(options: AssertionOptions, evidence: Evidence) -> list[ToolCall]:
    return [
        call
        for call in considered(options, evidence.transcript)
        if call.tool.lower() not in COMMAND_TOOLS or not command_names(call)
    ]


def _as_expected(options: ToolArguments, call: ToolCall) -> bool:
    arguments = without(call.arguments, options.ignore)
    given = {
        name: value
        for name, value in arguments.items()
        if not strictly_equal(value, options.defaults.get(name, MISSING))
    }
    return as_expected(options.args, given, options.mode, options.ignore)
