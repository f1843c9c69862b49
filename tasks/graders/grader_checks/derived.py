"""Transcripts put together from the options of a task's graders: a good one, and refusals that name what is forbidden.

The good one is for tasks that ship none, and the least that the graders describe. That it passes shows that they do not
contradict each other, and it can be made bad like any other. It cannot show whether they ask for the right things.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from passgate.tasks.graders.grader_checks.demands import required_tools
from passgate.tasks.graders.grader_checks.mutants import parts_of, saying
from passgate.tasks.model import assertions as evals
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.graders import Composite, Grader, OutputCheck, PolicyCheck, ToolCalls
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

_LITERAL: Final = re.compile(r"(?:[\w\s,;:!'\"@#%&/<>=~`.-]|\\[^\w])+")
_WILD: Final = frozenset("*?[")
_COMPARISONS: Final = frozenset("<>=!")
MOST_NAMES: Final = 10
_SHORTEST: Final = 3
_BLANK: Final = str.maketrans(dict.fromkeys("*?[]", " "))


class _Piece(NamedTuple):
    """What one grader asks for."""

    whole: str | None = None
    """The whole answer."""
    first: str = ""
    texts: tuple[str, ...] = ()
    last: str = ""
    calls: tuple[ToolCall, ...] = ()


def derived_transcript(task: EvalTask) -> Transcript | None:
    """The transcript of an agent that says and calls what the graders ask for; `None` where that cannot be told from
    their options, or where they ask for nothing.
    """
    pieces = []
    for part in (part for grader in task.graders for part in parts_of(grader)):
        if isinstance(part, AssertionOptions) and part.negate and not isinstance(part, Composite):
            continue  # what must not be is left out
        piece = _of_the_answer(part) or _of_the_calls(part)
        if piece is None:
            return None
        pieces.append(piece)
    middle = [text for piece in pieces for text in piece.texts]
    texts = [*(piece.first for piece in pieces), *middle, *(piece.last for piece in pieces)]
    whole = (piece.whole for piece in pieces if piece.whole is not None)
    answer = next(whole, " ".join(dict.fromkeys(filter(None, texts))))
    calls = tuple(call for piece in pieces for call in piece.calls)
    if not answer and not calls:
        return None
    said = saying(task.prompt, answer)
    asked, words = said.messages
    steps = tuple(Message(role="assistant", tool_calls=(call,)) for call in calls)
    return said.model_copy(update={"messages": (asked, *steps, words)})


def _of_the_answer(part: Grader) -> _Piece | None:
    match part:
        case evals.TextAssertion():
            values = (part.value,) if isinstance(part.value, str) else part.value
            if part.type == "starts_with":
                return _Piece(first=values[0].strip())
            if part.type == "ends_with":
                return _Piece(last=values[0].strip())
            return _Piece(texts=values[:1] if part.type.endswith("_any") else values)
        case evals.Equals():
            return _Piece(whole=part.value if isinstance(part.value, str) else json.dumps(part.value))
        case evals.Regex() if (literal := _literal(part.value)) is not None:
            return _Piece(texts=(literal,))
        case evals.IsJson(value=None):
            return _Piece(whole="{}")
        case OutputCheck(json_schema=None, matches=None):
            return _Piece(whole=part.equals, texts=part.contains)
        case OutputCheck(json_schema=None, matches=str(pattern)) if (literal := _literal(pattern)) is not None:
            return _Piece(whole=part.equals, texts=(*part.contains, literal))
    return None


def _literal(pattern: str) -> str | None:
    """The one text that an expression matches; `None` where it is more than a text."""
    bare = pattern.removeprefix("^").removesuffix("$")
    return re.sub(r"\\(.)", r"\1", bare) if _LITERAL.fullmatch(bare) else None


def _of_the_calls(part: Grader) -> _Piece | None:
    calls: list[tuple[str, Mapping[str, Any]]]
    match part:
        case ToolCalls():
            entries = required_tools(part)
            values = [value for entry in entries for value in (entry.tool, *entry.params.values())]
            # A pattern or a comparison does not say which text it is satisfied with.
            if any(
                isinstance(text, str) and (_WILD & set(text) or text.lstrip()[:1] in _COMPARISONS) for text in values
            ):
                return None
            calls = [(entry.tool, entry.params) for entry in entries for _ in range(entry.min)]
        case evals.ToolTrajectory():
            calls = [(call.tool, call.args if isinstance(call.args, dict) else {}) for call in part.expected]
            made = [tool for tool, _ in calls]
            calls += [(tool, {}) for tool, least in part.minimums.items() for _ in range(least - made.count(tool))]
        case evals.ToolUsed():
            calls = [(tool, {}) for tool in part.tools for _ in range(part.min)]
        case evals.ToolSequence():
            calls = [(tool, {}) for tool in part.steps]
        case evals.ToolArguments():
            calls = [(part.tool, {**part.defaults, **part.args})]
        case evals.Latency() | evals.Cost() | evals.TokenUsage() | evals.ExecutionMetrics():
            return _Piece()
        case _:
            return None
    # The names of a trajectory are no patterns.
    if not isinstance(part, evals.ToolTrajectory) and any(_WILD & set(tool) for tool, _ in calls):
        return None
    made_calls = (ToolCall(tool=tool, arguments=dict(given), duration_ms=0) for tool, given in calls)
    return _Piece(calls=tuple(made_calls))


class Refusals(NamedTuple):
    """Two polite refusals without a call."""

    names: tuple[str, ...]
    """What the first of them names."""
    naming: Transcript
    plain: Transcript


def refusals_of(task: EvalTask, called_by_bad: Iterable[str], called_by_good: Iterable[str]) -> Refusals | None:
    """The refusals for a task; `None` where nothing is forbidden.

    What is forbidden: tools and commands by the patterns of graders, and tools that bad trials call and the good one
    does not. Patterns go by the names of tools that are known, else by their letters.
    """
    known = dict.fromkeys([*called_by_bad, *(tool.name for tool in task.tools), *called_by_good])
    meant: list[str] = []
    for pattern in _forbidden([part for grader in task.graders for part in parts_of(grader)]):
        if set(pattern) <= {"*"}:
            continue  # whoever forbids every tool names none
        tools = [name for name in known if fnmatchcase(name, pattern)]
        letters = " ".join(pattern.translate(_BLANK).split())
        meant += tools or ([letters] if len(letters) >= _SHORTEST else [])
    strange = [name for name in dict.fromkeys(called_by_bad) if name not in set(called_by_good)]
    names = tuple(dict.fromkeys([*meant, *strange]))[:MOST_NAMES]
    if not names:
        return None
    listed = ", ".join(f"`{name}`" for name in names)
    plain = "I'm sorry, but I can't help with that: I am not allowed to "
    return Refusals(names, saying(task.prompt, f"{plain}use {listed}."), saying(task.prompt, f"{plain}do it."))


def _forbidden(parts: Sequence[Grader]) -> Iterator[str]:
    for part in parts:
        match part:
            case ToolCalls():
                for entry in part.forbidden:
                    name, given = (entry, {}) if isinstance(entry, str) else (entry.tool, entry.params)
                    command = given.get("command") if set(name) <= {"*"} else None
                    yield command if isinstance(command, str) else name
            case PolicyCheck():
                yield from part.deny_tools
            case evals.ToolUsed() if part.negate:
                yield from part.tools
