"""What graders demand of tool calls, and what they limit."""

import math
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from passgate.tasks.graders.tool_calls import call_matches
from passgate.tasks.graders.trajectories.trajectory_steps import named_like
from passgate.tasks.model.assertions import (
    Cost,
    ExecutionMetrics,
    Latency,
    SkillTrigger,
    StepCount,
    TokenUsage,
    ToolArguments,
    ToolSequence,
    ToolTrajectory,
    ToolUsed,
)
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader, RequiredTool, ToolCalls, TrajectoryMetrics
from passgate.tasks.model.transcript import ToolCall

MOST_CALLS: Final = 2000
"""Limits on calls and steps beyond this are not put to the test."""
_COUNTS: Final = frozenset({"max_steps", "max_tool_calls", "max_llm_calls", "max"})
_ALLOWS_NONE: Final = frozenset({"subset"})


def wants_calls(part: Grader) -> bool:
    """Whether it must not be satisfied by a trial without any tool call."""
    if isinstance(part, StepCount):
        return not part.negate and part.kind in {"tool", "command"} and bool(part.min)
    if isinstance(part, TrajectoryMetrics):
        return bool(part.min_tool_calls)
    return any(True for _ in _named(part))


def names_tools(part: Grader, stranger: str) -> bool:
    """Whether it must not be satisfied when every call is one of the tool `stranger` instead."""
    if isinstance(part, StepCount):
        return wants_calls(part) and part.pattern is not None and not named_like(stranger, part.pattern)
    return any(not named_like(stranger, name) for name in _named(part))


def _named(part: Grader) -> Iterator[str]:
    """The names or patterns of the tools that must be called, each of them."""
    if isinstance(part, AssertionOptions) and part.negate:
        return
    match part:
        case ToolCalls():
            yield from (entry if isinstance(entry, str) else entry.tool for entry in part.required)
        case ToolTrajectory() if part.mode not in _ALLOWS_NONE and all(part.minimums.values()):
            yield from (*(call.tool for call in part.expected), *part.minimums)
        case ToolUsed() if part.min:
            yield from part.tools
        case ToolSequence():
            yield from part.steps
        case ToolArguments():
            yield part.tool
        case SkillTrigger() if part.should_trigger:
            yield "skill"


def needs_call(part: Grader, calls: Sequence[ToolCall], place: int, stranger: str) -> bool:
    """Whether the call at a place of a good trial is one that must not be missing, nor be one of `stranger`."""
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    call = calls[place]
    match part:
        case ToolTrajectory() | ToolSequence():
            return part.mode == "exact"
        case ToolCalls():
            entries = [
                entry if isinstance(entry, RequiredTool) else RequiredTool(tool=entry) for entry in part.required
            ]
            other = call.model_copy(update={"tool": stranger})
            return any(
                call_matches(entry, call)
                and not call_matches(entry, other)
                and sum(call_matches(entry, made) for made in calls) == entry.min
                for entry in entries
            )
        case ToolUsed():
            return any(
                named_like(call.tool, name)
                and not named_like(stranger, name)
                and sum(named_like(made.tool, name) for made in calls) == part.min
                for name in part.tools
            )
        case _:
            return False


def is_limit(part: Grader) -> bool:
    """Whether it must not be satisfied by a trial without end: very many calls, tokens, dollars and seconds."""
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    match part:
        case Latency() | Cost() | TokenUsage():
            return True
        case StepCount():
            return part.kind in {"any", "tool"} and part.pattern is None and part.max is not None
        case TrajectoryMetrics() | ExecutionMetrics():
            return any(not _is_beyond(name, value) for name, value in limits_of(part))
        case _:
            return False


def limits_of(part: Grader) -> list[tuple[str, float]]:
    """The upper limits of a grader that are given."""
    names = [name for name in type(part).model_fields if name == "max" or name.startswith("max_")]
    return [(name, value) for name in names if isinstance(value := getattr(part, name), int | float)]


def counts_of(part: Grader) -> list[int]:
    """The upper limits on calls and steps that are put to the test."""
    return [int(value) for name, value in limits_of(part) if name in _COUNTS and value < MOST_CALLS]


def _is_beyond(name: str, value: float) -> bool:
    return math.isinf(value) or (name in _COUNTS and value >= MOST_CALLS) or (name.endswith("_rate") and value >= 1)


def tool_patterns(part: Grader) -> Iterator[str]:
    """Every name or pattern of a tool that a grader mentions."""
    yield from _named(part)
    if isinstance(part, ToolCalls):
        yield from (entry if isinstance(entry, str) else entry.tool for entry in part.forbidden)
    if isinstance(part, StepCount) and part.pattern is not None:
        yield part.pattern


def stranger_to(parts: Sequence[Grader]) -> str:
    """The name of a tool that no grader means, but for those that mean any."""
    patterns = [pattern for part in parts for pattern in tool_patterns(part) if set(pattern) - {"*", "?"}]
    names = (f"another_tool{'_' * length}" for length in range(100))
    return next(
        (name for name in names if not any(fnmatchcase(name, pattern.lower()) for pattern in patterns)), "another_tool"
    )
