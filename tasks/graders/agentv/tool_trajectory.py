"""The tool calls of a trial against those that are expected, as AgentV up to 5.0 scores them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.trajectories.limits import made_calls
from passgate.tasks.graders.trajectories.tool_trajectory import expected_text, grade_tool_trajectory, in_time, same_call
from passgate.tasks.model.assertions import ExpectedCall, ToolTrajectory
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.transcript import ToolCall

Pair = tuple[ExpectedCall, ToolCall | None]
"""An expected call and the one that was found for it."""


async def grade_tool_trajectory_as_agentv(options: ToolTrajectory, evidence: Evidence) -> Grade:
    """The calls that are known against the expected ones, by `mode`:

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
    calls = made_calls(evidence)
    asked = options.minimums if options.mode == "any_order" else options.expected
    if not asked and options.mode != "subset":
        return await grade_tool_trajectory(options, evidence)
    checks = list(_MODES[options.mode](options, calls))
    score = sum(check.passed for check in checks) / len(checks) if checks else 1.0
    return scored(options, score, checks)


def _minimums(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[Check]:
    for tool, least in options.minimums.items():
        count = sum(call.tool == tool for call in calls)
        yield Check(passed=count >= least, message=f"{tool}: {count} calls, expected at least {least}")


def _in_order(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[Check]:
    remaining = iter(calls)
    for expected in options.expected:
        call = next((call for call in remaining if call.tool == expected.tool), None)
        yield from _found(options, (expected, call))


def _exact(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[Check]:
    for place, expected in enumerate(options.expected):
        yield from _found(options, (expected, calls[place] if place < len(calls) else None))


def _found(options: ToolTrajectory, pair: Pair) -> Iterator[Check]:
    """A check of the call, and one of its duration: failed where the call is not found, none where it is not known."""
    expected, call = pair
    found = call is not None and same_call(expected, options.args_match, call)
    yield Check(passed=found, message=f"{expected_text(expected)} was {'' if found else 'not '}found")
    quick = in_time(expected, call) if call is not None and found else False
    if expected.max_duration_ms is not None and quick is not None:
        yield Check(passed=quick, message=f"{expected.tool} took at most {expected.max_duration_ms:g} ms")


def _superset(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[Check]:
    left = list(calls)
    for expected in options.expected:
        place = next((n for n, call in enumerate(left) if same_call(expected, options.args_match, call)), None)
        if place is not None:
            del left[place]
        found = place is not None
        yield Check(passed=found, message=f"{expected.tool} was {'' if found else 'not '}found")


def _subset(options: ToolTrajectory, calls: Sequence[ToolCall]) -> Iterator[Check]:
    for call in calls:
        allowed = any(same_call(expected, options.args_match, call) for expected in options.expected)
        yield Check(passed=allowed, message=f"{call.tool} is {'' if allowed else 'not '}expected")


_MODES: Final[dict[str, Callable[[ToolTrajectory, Sequence[ToolCall]], Iterator[Check]]]] = {
    "any_order": _minimums,
    "in_order": _in_order,
    "exact": _exact,
    "superset": _superset,
    "subset": _subset,
}
