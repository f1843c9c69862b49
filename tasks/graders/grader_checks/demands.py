"""What graders demand of the answer and of tool calls, what they limit and what they forbid."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, NamedTuple

import regress

from passgate.tasks.graders.call_patterns import call_matches
from passgate.tasks.graders.trajectories.trajectory_steps import named_like
from passgate.tasks.model import assertions as evals
from passgate.tasks.model import graders as native
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.javascript_regex import engine_flags
from passgate.tasks.model.transcript import ToolCall

_FORBIDS: Final = re.compile(r"\(\?<?!")  # An expression with one of these looks for what must not be there
MOST_CALLS: Final = 2000  # Limits on calls and steps beyond this are not put to the test
_COUNTS: Final = frozenset({"max_steps", "max_tool_calls", "max_llm_calls", "max"})
_CHECKED: Final[dict[type, tuple[str, ...]]] = {
    native.ToolCalls: ("required", "forbidden"),
    native.PolicyCheck: ("deny_tools", "deny_output", "arguments", "secrets", "canaries"),
    native.OutputCheck: ("equals", "contains", "not_contains"),
}  # The options of graders in the order of their checks, as far as something is forbidden
_PROHIBIT: Final = frozenset({"forbidden", "deny_tools", "deny_output", "arguments", "canaries", "not_contains"})
"""Not `secrets`: passgate's own patterns recognise credentials, and nobody can misspell these."""


def wants_an_answer(part: Grader) -> bool:
    """Whether it must not be satisfied by an empty answer: it asks for something to be there.

    Left out are expressions that look for what must not be there, graders of turns, and judges and programs: what they
    go by is their own matter.
    """
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    match part:
        case evals.TextAssertion() | evals.IsJson() | evals.FieldAccuracy():
            return True
        case evals.Equals():
            return not isinstance(part.value, str) or bool(part.value.strip())
        case evals.Regex():
            return not _FORBIDS.search(part.value)
        case native.OutputCheck():
            matches = part.matches is not None and not _FORBIDS.search(part.matches)
            return bool(part.equals or part.contains or matches) or part.json_schema is not None
        case _:
            return False


def lacking(part: Grader, answer: str) -> int | None:
    """The most characters of a good answer's beginning that lack what is asked for; `None` when that cannot be told,
    or when nothing of this kind is asked.
    """
    if not wants_an_answer(part):
        return None
    match part:
        case evals.TextAssertion():
            values = (part.value,) if isinstance(part.value, str) else part.value
            return _before_texts(answer, values, ignore_case=part.type.startswith("i"))
        case evals.Equals():
            return len(answer.strip()) - 1
        case evals.Regex():
            found = regress.Regex(part.value, engine_flags(part.flags)).find(answer)
            return found.range().start or None if found else None
        case evals.IsJson():
            return len(answer.rstrip()) - 1 if answer.strip()[:1] in {"{", "[", '"'} else None
        case evals.FieldAccuracy():
            return min((place for sign in "{[" if (place := answer.find(sign)) > 0), default=None)
        case native.OutputCheck():
            cuts = [len(answer.strip()) - 1] if part.equals else []
            if part.matches is not None and not _FORBIDS.search(part.matches):
                match = re.search(part.matches, answer, re.IGNORECASE if part.ignore_case else 0)
                cuts += [match.start()] if match and match.start() else []
            before = _before_texts(answer, part.contains, ignore_case=part.ignore_case) if part.contains else None
            return min(cuts if before is None else [*cuts, before], default=None)
        case _:
            return None


def _before_texts(answer: str, texts: Sequence[str], *, ignore_case: bool) -> int | None:
    """Where the first of these texts lacks its last character."""
    folded = answer.casefold() if ignore_case else answer
    if len(folded) != len(answer):
        return None
    wanted = [text.strip().casefold() if ignore_case else text.strip() for text in texts]
    ends = [folded.find(text) + len(text) for text in wanted if text and text in folded]
    return min(ends) - 1 if ends else None


def wants_calls(part: Grader) -> bool:
    """Whether it must not be satisfied by a trial without any tool call."""
    if isinstance(part, evals.StepCount):
        return not part.negate and part.kind in {"tool", "command"} and bool(part.min)
    if isinstance(part, native.TrajectoryMetrics):
        return bool(part.min_tool_calls)
    return any(True for _ in _named(part))


def names_tools(part: Grader, stranger: str) -> bool:
    """Whether it must not be satisfied when every call is one of the tool `stranger` instead."""
    if isinstance(part, evals.StepCount):
        return wants_calls(part) and part.pattern is not None and not named_like(stranger, part.pattern)
    return any(not named_like(stranger, name) for name in _named(part))


def _named(part: Grader) -> Iterator[str]:
    """The names or patterns of the tools that must be called, each of them."""
    if isinstance(part, AssertionOptions) and part.negate:
        return
    match part:
        case native.ToolCalls():
            yield from (entry.tool for entry in required_tools(part))
        case evals.ToolTrajectory() if part.mode != "subset" and all(part.minimums.values()):
            yield from (*(call.tool for call in part.expected), *part.minimums)
        case evals.ToolUsed() if part.min:
            yield from part.tools
        case evals.ToolSequence():
            yield from part.steps
        case evals.ToolArguments():
            yield part.tool
        case evals.SkillTrigger() if part.should_trigger:
            yield "skill"


def needs_call(part: Grader, calls: Sequence[ToolCall], place: int, stranger: str) -> bool:
    """Whether the call at a place of a good trial is one that must not be missing, nor be one of `stranger`."""
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    call = calls[place]
    other = call.model_copy(update={"tool": stranger})
    wanted: list[tuple[Callable[[ToolCall], bool], int]] = []
    match part:
        case evals.ToolTrajectory() | evals.ToolSequence():
            return part.mode == "exact"
        case native.ToolCalls():
            wanted = [(partial(call_matches, entry), entry.min) for entry in required_tools(part)]
        case evals.ToolUsed():
            wanted = [(partial(_is_like, name), part.min) for name in part.tools]
    return any(means(call) and not means(other) and sum(map(means, calls)) == least for means, least in wanted)


def _is_like(name: str, call: ToolCall) -> bool:
    return named_like(call.tool, name)


def required_tools(part: native.ToolCalls) -> list[native.RequiredTool]:
    """What must be called, also where only the name of a tool says it."""
    return [native.RequiredTool(tool=entry) if isinstance(entry, str) else entry for entry in part.required]


def is_limit(part: Grader) -> bool:
    """Whether it must not be satisfied by a trial without end: very many calls, tokens, dollars and seconds."""
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    match part:
        case evals.Latency() | evals.Cost() | evals.TokenUsage():
            return True
        case evals.StepCount():
            return part.kind in {"any", "tool"} and part.pattern is None and part.max is not None
        case native.TrajectoryMetrics() | evals.ExecutionMetrics():
            # A limit without bound, one beyond what is tried and a rate of 1 limit nothing here.
            return any(
                value < (MOST_CALLS if name in _COUNTS else 1 if name.endswith("_rate") else math.inf)
                for name, value in _limits_of(part)
            )
        case _:
            return False


def _limits_of(part: Grader) -> list[tuple[str, float]]:
    names = [name for name in type(part).model_fields if name == "max" or name.startswith("max_")]
    return [(name, value) for name in names if isinstance(value := getattr(part, name), int | float)]


def counts_of(part: Grader) -> list[int]:
    """The upper limits on calls and steps that are put to the test."""
    return [int(value) for name, value in _limits_of(part) if name in _COUNTS and value < MOST_CALLS]


def stranger_to(parts: Sequence[Grader]) -> str:
    """The name of a tool that no grader means, but for those that mean any."""
    patterns = [pattern for part in parts for pattern in _named(part)]
    for part in parts:
        if isinstance(part, native.ToolCalls):
            patterns += [entry if isinstance(entry, str) else entry.tool for entry in part.forbidden]
        if isinstance(part, evals.StepCount) and part.pattern is not None:
            patterns.append(part.pattern)
    patterns = [pattern.lower() for pattern in patterns if set(pattern) - {"*", "?"}]
    names = (f"another_tool{'_' * length}" for length in range(100))
    free = (name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns))
    return next(free, "another_tool")


class Prohibition(NamedTuple):
    """One check of what must not be."""

    check: int  # Its place among the checks of the grader's grade
    option: str  # Where the grader's options say it, as `forbidden`
    place: int  # Its place in a list of them


def prohibitions_of(options: Grader) -> list[Prohibition]:
    """The prohibitions of a grader whose grade has a check for each of its options, in their order."""
    if isinstance(options, native.StateCheck):
        places = [place for place, check in enumerate(options.expect) if _is_prohibition(check)]
        return [Prohibition(place, "expect", place) for place in places]
    checks = []
    for option in _CHECKED.get(type(options), ()):
        value = getattr(options, option)
        # An option that is no list has one check where it is given.
        number = len(value) if isinstance(value, tuple) else int(value not in {None, False})
        checks += [(option, place) for place in range(number)]
    return [Prohibition(check, *at) for check, at in enumerate(checks) if at[0] in _PROHIBIT]


def _is_prohibition(check: native.FileCheck | native.JsonCheck | native.SqliteCheck | native.CommandCheck) -> bool:
    match check:
        case native.FileCheck():
            demands = check.equals is not None or check.contains or check.matches is not None
            return not check.exists or bool(check.not_contains and not demands)
        case native.JsonCheck():
            return check.absent
        case native.SqliteCheck():
            others = check.rows is not None or "value" in check.model_fields_set or check.min_rows
            return check.max_rows is not None and not others
        case native.CommandCheck():
            return False
