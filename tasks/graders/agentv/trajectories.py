"""What the agent did, as AgentV scores it.

A transcript that holds no calls counts as one of a trial without calls, complete or not. A limit on what was not
measured is broken.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence, GradeFunction
from passgate.tasks.graders.trajectories import limits
from passgate.tasks.graders.trajectories import tool_trajectory as trajectory
from passgate.tasks.graders.trajectories import trajectory_steps as steps
from passgate.tasks.model.assertions import ExecutionMetrics, SkillTrigger, StepCount, ToolArguments, ToolTrajectory
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.json_values import MISSING, strictly_equal
from passgate.tasks.model.quotes import raw
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

COMMAND_TOOLS: Final = frozenset({"exec_command", "local_shell", "shell"})
"""Shells whose calls, where they say their command, are commands and no tools. In lower case."""
_LIMITED: Final[limits.Limited] = {
    # AgentV has no limits on tokens in and tokens out alone.
    **{
        option: limit
        for option, limit in limits.LIMITED.items()
        if option not in {"max_input_tokens", "max_output_tokens"}
    },
    "max_tool_calls": ("tool calls", lambda evidence: len(evidence.made_calls)),
    # An answer without messages is one message.
    "max_llm_calls": ("model calls", lambda evidence: len(evidence.transcript.steps) or 1),
    "max_total": (
        "tokens, with cached tokens counted twice",
        lambda evidence: (
            None if (total := evidence.metrics.total_tokens) is None else total + (evidence.metrics.tokens_cached or 0)
        ),
    ),
}


async def grade_limits_as_agentv(options: limits.ExecutionLimits, evidence: Evidence) -> RawGrade:
    """The share of the limits of `execution_metrics` that are kept; of other graders 1 when every one is kept, else 0.

    AgentV drops `execution_metrics` with limits on tokens in and tokens out alone; passgate does not.
    """
    checks = [limits.limit_check(limit) for limit in limits.limits_of(options, evidence, _LIMITED)]
    if not isinstance(options, ExecutionMetrics):
        if not checks:
            raise MeasurementError(f"{options.label} has nothing to check that AgentV knows: set at least one limit")
        return scored(options, float(all(check.passed for check in checks)), checks)
    if options.target_exploration_ratio is not None:
        checks.append(limits.exploration_check(options, options.target_exploration_ratio, evidence.made_calls))
    return _shared(options, checks) if checks else await limits.grade_execution_limits(options, evidence)


def _shared(options: ExecutionMetrics | ToolTrajectory, checks: Sequence[RawCheck]) -> RawGrade:
    """The grade of the share of checks that passed; 1 without any."""
    return scored(options, sum(check.passed for check in checks) / len(checks) if checks else 1.0, checks)


async def grade_skill_trigger_as_agentv(options: SkillTrigger, evidence: Evidence) -> RawGrade:
    """1 when the skill was used, or was not, as wanted, else 0: in any call, or in what a tool answered."""

    def uses(call: ToolCall) -> bool:
        folder = f"skills/{options.skill}/"
        if call.tool.lower() == "skill" and options.skill in str(call.arguments.get("skill", "")):
            return True
        if call.tool.lower() == "read" and folder in steps.read_path(call):
            return True
        result = call.result
        return folder in (result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str))

    use = next(filter(uses, evidence.made_calls), None)
    return steps.skill_grade(options, use, where="any call or result")


async def grade_tool_trajectory_as_agentv(options: ToolTrajectory, evidence: Evidence) -> RawGrade:
    """The calls that are known against the expected ones, by `mode`, as AgentV up to 5.0 does:

    - `any_order`: the share of `minimums` that are reached; `expected` is not looked at.
    - `in_order`: a forward search for each expected call, in which a call of the tool with other arguments is used up;
      the share of calls found and limits on duration kept.
    - `exact`: place by place, with the same share. Calls beyond the expected ones cost nothing.
    - `superset`: the share of expected calls that are found, each taking the first call that fits; limits on duration
      are not looked at.
    - `subset`: the share of calls that are expected; 1 without any calls.

    A limit on a duration that is not known is left out. What AgentV does not grade at all, `any_order` without
    `minimums` and other modes without `expected`, is graded as AgentEvals means it.
    """
    asked = options.minimums if options.mode == "any_order" else options.expected
    if not asked and options.mode != "subset":
        return await trajectory.grade_tool_trajectory(options, evidence)
    return _shared(options, list(_MODES[options.mode](options, evidence.made_calls)))


def _one_by_one(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[RawCheck]:
    remaining = iter(calls)
    for expected in options.expected:
        # `next` leaves the iterator behind what it took, so each search goes on where the last one stopped.
        places = remaining if options.mode == "exact" else (call for call in remaining if call.tool == expected.tool)
        call = next(iter(places), None)
        found = call is not None and trajectory.same_call(expected, options.args_match, call)
        yield RawCheck(
            passed=found, message=raw(trajectory.expected_text(expected), f" was {'' if found else 'not '}found")
        )
        # A call that is not found breaks its limit too; a duration that is not known is no check.
        quick = trajectory.in_time(expected, call) if call is not None and found else False
        if expected.max_duration_ms is not None and quick is not None:
            yield RawCheck(passed=quick, message=f"{expected.tool} took at most {expected.max_duration_ms:g} ms")


def _superset(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[RawCheck]:
    left = list(calls)
    for expected in options.expected:
        place = next(
            (n for n, call in enumerate(left) if trajectory.same_call(expected, options.args_match, call)), None
        )
        found = place is not None
        if place is not None:
            del left[place]
        yield RawCheck(passed=found, message=f"{expected.tool} was {'' if found else 'not '}found")


def _subset(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[RawCheck]:
    for call in calls:
        allowed = any(trajectory.same_call(expected, options.args_match, call) for expected in options.expected)
        yield RawCheck(passed=allowed, message=f"{call.tool} is {'' if allowed else 'not '}expected")


_MODES: Final[dict[str, Callable[[ToolTrajectory, Sequence[ToolCall]], Iterator[RawCheck]]]] = {
    "any_order": trajectory.minimum_checks,
    "in_order": _one_by_one,
    "exact": _one_by_one,
    "superset": _superset,
    "subset": _subset,
}


def of_tools_alone(native: GradeFunction) -> GradeFunction:
    """A grader of tool calls that sees those alone that are no commands."""

    def tools_of(message: Message) -> tuple[ToolCall, ...]:
        return tuple(c for c in message.tool_calls if c.tool.lower() not in COMMAND_TOOLS or not steps.command_names(c))

    async def grade_tools(options: Any, evidence: Evidence) -> RawGrade:
        messages = [
            message.model_copy(update={"tool_calls": tools_of(message)}) for message in evidence.transcript.messages
        ]
        return await native(options, _taken_as_complete(evidence, messages=tuple(messages)))

    return grade_tools


def _taken_as_complete(evidence: Evidence, **update: Any) -> Evidence:
    transcript = evidence.transcript.model_copy(update={"complete": True, **update})
    return replace(evidence, transcript=transcript)


def called_with(options: ToolArguments, call: ToolCall) -> bool:
    """Whether a call has the arguments that are asked for. One that is as in `defaults` counts as not given, also where
    it is expected.
    """
    given = {
        name: value
        for name, value in steps.without(call.arguments, options.ignore).items()
        if not strictly_equal(value, options.defaults.get(name, MISSING))
    }
    return steps.as_expected(options, options.args, given)


async def grade_step_count_as_agentv(options: StepCount, evidence: Evidence) -> RawGrade:
    """As `grade_step_count`, where each step has one kind; a shell without a command is a tool."""

    def find_steps(transcript: Transcript) -> list[steps.Step]:
        found = steps.steps_of(transcript, COMMAND_TOOLS)
        # A command has more names than its tool's: see `command_names`.
        kinds = [frozenset({"command" if len(step.names) > 1 else "tool"}) for step in found]
        pairs = zip(found, kinds, strict=True)
        return [step._replace(kinds=kind) if "command" in step.kinds else step for step, kind in pairs]

    return await steps.grade_step_count(options, _taken_as_complete(evidence), find_steps)
