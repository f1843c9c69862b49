"""A good transcript put together from what the graders of a task ask for, where the task ships none.

It is the least that the graders describe. That it passes shows that they do not contradict each other, and it can be
made bad like any other; whether they ask for the right things it cannot show.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.graders.grader_checks.demands import required_tools
from passgate.tasks.graders.grader_checks.mutants import parts_of, saying
from passgate.tasks.model import assertions as evals
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.graders import Composite, Grader, OutputCheck, ToolCalls
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

_LITERAL: Final = re.compile(r"(?:[\w\s,;:!'\"@#%&/<>=~`.-]|\\[^\w])+")
_WILD: Final = frozenset("*?[")
_COMPARISONS: Final = frozenset("<>=!")


class _Piece(NamedTuple):
    """What one grader asks for."""

    whole: str | None = None
    """The whole answer."""
    first: str = ""
    texts: tuple[str, ...] = ()
    last: str = ""
    calls: tuple[ToolCall, ...] = ()


class _UnknownError(Exception):
    """What a grader asks for cannot be put together."""


def derived_transcript(task: EvalTask) -> Transcript | None:
    """The transcript of an agent that says and calls what the graders ask for; `None` where that cannot be told from
    their options, or where they ask for nothing.
    """
    parts = [part for grader in task.graders for part in parts_of(grader)]
    try:
        pieces = [_piece(part) for part in parts]
    except _UnknownError:
        return None
    answer = _answer(pieces)
    calls = tuple(call for piece in pieces for call in piece.calls)
    if not answer and not calls:
        return None
    said = saying(task.prompt, answer)
    asked, words = said.messages
    steps = tuple(Message(role="assistant", tool_calls=(call,)) for call in calls)
    return said.model_copy(update={"messages": (asked, *steps, words)})


def _answer(pieces: Sequence[_Piece]) -> str:
    whole = next((piece.whole for piece in pieces if piece.whole is not None), None)
    if whole is not None:
        return whole
    middle = [text for piece in pieces for text in piece.texts]
    texts = [*(piece.first for piece in pieces), *middle, *(piece.last for piece in pieces)]
    return " ".join(dict.fromkeys(filter(None, texts)))


def _piece(part: Grader) -> _Piece:
    if isinstance(part, AssertionOptions) and part.negate and not isinstance(part, Composite):
        return _Piece()
    piece: Callable[[Any], _Piece] | None = _PIECES.get(type(part))
    if piece is None:
        raise _UnknownError
    return piece(part)


def _of_text(part: evals.TextAssertion) -> _Piece:
    values = (part.value,) if isinstance(part.value, str) else part.value
    if part.type == "starts_with":
        return _Piece(first=values[0].strip())
    if part.type == "ends_with":
        return _Piece(last=values[0].strip())
    return _Piece(texts=values[:1] if part.type.endswith("_any") else values)


def _literal(pattern: str) -> str:
    bare = pattern.removeprefix("^").removesuffix("$")
    if not _LITERAL.fullmatch(bare):
        raise _UnknownError
    return re.sub(r"\\(.)", r"\1", bare)


def _of_json(part: evals.IsJson) -> _Piece:
    if part.value is not None:
        raise _UnknownError
    return _Piece(whole="{}")


def _of_output(part: OutputCheck) -> _Piece:
    if part.json_schema is not None:
        raise _UnknownError
    matches = () if part.matches is None else (_literal(part.matches),)
    return _Piece(whole=part.equals, texts=(*part.contains, *matches))


def _of_tool_calls(part: ToolCalls) -> _Piece:
    entries = required_tools(part)
    wanted = [entry.tool for entry in entries] + [
        value for entry in entries for value in entry.params.values() if isinstance(value, str)
    ]
    if any(_WILD & set(text) or text.lstrip()[:1] in _COMPARISONS for text in wanted):
        raise _UnknownError
    return _Piece(calls=tuple(_call(entry.tool, entry.params) for entry in entries for _ in range(entry.min)))


def _of_trajectory(part: evals.ToolTrajectory) -> _Piece:
    expected = tuple(_call(call.tool, call.args if isinstance(call.args, dict) else {}) for call in part.expected)
    made = [call.tool for call in expected]
    more = [tool for tool, least in part.minimums.items() for _ in range(least - made.count(tool))]
    return _Piece(calls=(*expected, *(_call(tool) for tool in more)))


def _named(tools: Sequence[str], arguments: Mapping[str, Any] | None = None) -> _Piece:
    if any(_WILD & set(tool) for tool in tools):
        raise _UnknownError
    return _Piece(calls=tuple(_call(tool, arguments) for tool in tools))


def _call(tool: str, arguments: Mapping[str, Any] | None = None) -> ToolCall:
    return ToolCall(tool=tool, arguments=dict(arguments or {}), duration_ms=0)


_PIECES: Final[dict[type, Callable[[Any], _Piece]]] = {
    evals.TextAssertion: _of_text,
    evals.Equals: lambda part: _Piece(whole=part.value if isinstance(part.value, str) else json.dumps(part.value)),
    evals.Regex: lambda part: _Piece(texts=(_literal(part.value),)),
    evals.IsJson: _of_json,
    OutputCheck: _of_output,
    ToolCalls: _of_tool_calls,
    evals.ToolTrajectory: _of_trajectory,
    evals.ToolUsed: lambda part: _named([tool for tool in part.tools for _ in range(part.min)]),
    evals.ToolSequence: lambda part: _named(part.steps),
    evals.ToolArguments: lambda part: _named([part.tool], {**part.defaults, **part.args}),
    **dict.fromkeys((evals.Latency, evals.Cost, evals.TokenUsage, evals.ExecutionMetrics), lambda _: _Piece()),
}
