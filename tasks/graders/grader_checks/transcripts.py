"""The transcripts that graders are tried with: mutants of a good one, a good one that is derived, and refusals.

A mutant has to be killed where correct graders must kill it, and then it counts. It counts when the task would fail if
every part that the mutant hits said no: weights and aggregators may well let something pass. The rules:

- `empty answer`: nothing is said, all calls are made. Hits what asks for something to be in the answer: texts, JSON,
  fields, expressions that do not look for what must not be there.
- `truncated output`: the answer ends in its first half, before the first thing that a grader asks for. Hits the parts
  of which it can be told where that is. An answer whose required words stand in its first half is cut before them.
- `dropped step`: all calls are gone. Hits what asks for calls. One call alone is dropped where it must not be missing:
  where the calls must be exactly these, or a tool is called no more often than it must be.
- `swapped tool`: all calls are of another tool. Hits what asks for tools by name. One call alone as above.
- `endless trial`: the same failing call very many times, immense tokens, dollars and seconds. Hits limits. Budgets are
  lifted, so that graders are put to the test and not the meter.

Milder mutants, such as any other single call dropped, are tried too where that costs nothing, and never counted: that
they pass may be meant. Nothing of the state is changed, so graders that see only the state keep their grades.

The derived transcript is for tasks that ship no good one, and the least that the graders describe. That it passes shows
that they do not contradict each other, and it can be made bad like any other. It cannot show whether they ask for the
right things.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, NamedTuple

from passgate.tasks.graders.grader_checks import demands
from passgate.tasks.model import assertions as evals
from passgate.tasks.model import graders as native
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

MOST_SINGLE_CALLS: Final = 12  # Calls of one transcript that are dropped and swapped one by one
ENDLESS_MILLISECONDS: Final = 1e12
ENDLESS_USAGE: Final = Usage(
    tokens_in=10**8, tokens_cached=10**8, tokens_cache_write=10**8, tokens_out=10**8, cost_usd=1e6
)  # Of a step; the sum over the steps has to be one that a transcript can hold
_STATE: Final = (native.DeterministicTests, native.StaticAnalysis, native.StateCheck)
_JUDGES: Final = (native.LlmRubric, evals.LlmGrader, evals.Rubrics)
_PROGRAMS: Final = (evals.CodeGrader, evals.ScriptAssertion, evals.Unavailable)
_LITERAL: Final = re.compile(r"(?:[\w\s,;:!'\"@#%&/<>=~`.-]|\\[^\w])+")
_WILD: Final = frozenset("*?[")
_COMPARISONS: Final = frozenset("<>=!")
MOST_NAMES: Final = 10
_SHORTEST: Final = 3
_BLANK: Final = str.maketrans(dict.fromkeys("*?[]", " "))


class Mutant(NamedTuple):
    """A transcript made bad in one way."""

    kind: str
    what: str  # What was done to it, in words
    transcript: Transcript
    hits: Callable[[Grader], bool]  # Whether a part of a grader must notice
    looks: Callable[[Grader], bool]
    """Whether a part of a grader is asked again; the others keep the grades of the good transcript."""


def mutants_of(task: EvalTask, good: Transcript) -> Iterator[Mutant]:
    """Every mutant of a good transcript that differs from it, those that may count and milder ones."""
    parts = [part for grader in task.graders for part in parts_of(grader)]
    found = [*_mutants_of_the_answer(parts, good), *_mutants_of_the_calls(parts, good), *_endless(parts, good)]
    yield from (mutant for mutant in found if mutant.transcript != good)


def _mutants_of_the_answer(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    if not good.output.strip():
        return

    def wants_words(part: Grader) -> bool:
        # Judges are not asked about an agent that neither says nor does anything: they must all say no.
        return demands.wants_an_answer(part) or (not good.tool_calls and is_judged(part))

    def lacks_something(part: Grader) -> bool:
        return demands.lacking(part, good.output) is not None

    silenced = [
        message.model_copy(update={"content": ""}) if message.role == "assistant" else message
        for message in good.messages
    ]
    empty = good.model_copy(update={"messages": tuple(silenced), "output": ""})
    yield Mutant("empty answer", "the answer is empty", empty, wants_words, lambda part: not sees_only_the_state(part))
    cuts = [cut for part in parts if (cut := demands.lacking(part, good.output)) is not None]
    kept = min([len(good.output) // 2, *cuts])
    if cuts and kept > 0:
        what = f"the answer ends after {kept} of {len(good.output)} characters"
        shorter = _with_answer(good, good.output[:kept])
        yield Mutant("truncated output", what, shorter, lacks_something, _looks_at_words)


def _with_answer(transcript: Transcript, answer: str) -> Transcript:
    messages = list(transcript.messages)
    spoken = [place for place, said in enumerate(messages) if said.role == "assistant" and said.content.strip()]
    if spoken:
        messages[spoken[-1]] = messages[spoken[-1]].model_copy(update={"content": answer})
    return transcript.model_copy(update={"messages": tuple(messages), "output": answer})


def _mutants_of_the_calls(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    calls = good.tool_calls
    if not calls:
        return
    stranger = demands.stranger_to(parts)
    everywhere = range(len(calls))
    silenced, swapped = _with_calls(good, everywhere, None), _with_calls(good, everywhere, stranger)
    yield Mutant("dropped step", "no tool is called", silenced, demands.wants_calls, _looks_at_words)
    named = partial(demands.names_tools, stranger=stranger)
    yield Mutant("swapped tool", f"every call is one of {stranger}", swapped, named, _looks_at_words)
    # With one call alone, that is every call.
    for place in everywhere[:MOST_SINGLE_CALLS] if len(calls) > 1 else ():
        tool, needed = calls[place].tool, partial(demands.needs_call, calls=calls, place=place, stranger=stranger)
        gone, swapped = _with_calls(good, [place], None), _with_calls(good, [place], stranger)
        yield Mutant("dropped step", f"the call {place + 1}, of {tool}, is gone", gone, needed, is_cheap)
        what = f"the call {place + 1} is one of {stranger}, not {tool}"
        yield Mutant("swapped tool", what, swapped, needed, is_cheap)


def _with_calls(transcript: Transcript, places: Sequence[int], tool: str | None) -> Transcript:
    """The same with this tool in the calls at these places, counted over all messages; `None`: without the calls."""
    messages, place = [], 0
    for message in transcript.messages:
        calls = []
        for position, call in enumerate(message.tool_calls, start=place):
            if position not in places:
                calls.append(call)
            elif tool is not None:
                calls.append(call.model_copy(update={"tool": tool}))
        place += len(message.tool_calls)
        # A message that had nothing but the calls that are gone is gone too.
        if calls or message.content.strip() or not message.tool_calls:
            messages.append(message.model_copy(update={"tool_calls": tuple(calls)}))
    return transcript.model_copy(update={"messages": tuple(messages)})


def _endless(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    limits = [part for part in parts if demands.is_limit(part)]
    if not limits:
        return
    number = 10 + 2 * max((count for part in limits for count in demands.counts_of(part)), default=0)
    first = next(iter(good.tool_calls), ToolCall(tool=demands.stranger_to(parts)))
    call = first.model_copy(update={"is_error": True, "duration_ms": ENDLESS_MILLISECONDS, "refused": False})
    step = Message(role="assistant", tool_calls=(call,), usage=ENDLESS_USAGE, latency_ms=ENDLESS_MILLISECONDS)
    last = Message(role="assistant", content=good.output, usage=ENDLESS_USAGE, latency_ms=ENDLESS_MILLISECONDS)
    asked = tuple(message for message in good.messages if message.role != "assistant")
    update = {
        "messages": (*asked, *[step] * number, last),
        # What the steps say counts where the transcript says nothing of the whole.
        "usage": Usage(),
        "wall_time_seconds": ENDLESS_MILLISECONDS / 1000,
    }
    what = f"the same failing call {number} times, at immense cost"
    yield Mutant("endless trial", what, good.model_copy(update=update), demands.is_limit, is_cheap)


def _looks_at_words(part: Grader) -> bool:
    return not sees_only_the_state(part) and not is_judged(part)


def saying(prompt: str, answer: str) -> Transcript:
    """A trial of one answer and no call."""
    asked, said = Message(role="user", content=prompt), Message(role="assistant", content=answer)
    return Transcript(messages=(asked, said), output=answer, usage=Usage(tokens_in=0, tokens_out=0, cost_usd=0.0))


def parts_of(grader: Grader) -> Iterator[Grader]:
    """The graders that one is made of, at any depth; itself when it is made of none. A composite whose score a program
    or a judge gives is among its parts.
    """
    if not isinstance(grader, native.Composite | native.Turns):
        yield grader
        return
    if isinstance(grader, native.Turns):
        members = [*(member for turn in grader.turns for member in turn.assertions), *grader.conversation]
    else:
        members = list(grader.assertions)
        if grader.aggregator.type in {"code_grader", "llm_grader"}:
            yield grader
    for member in members:
        yield from parts_of(member)


def sees_only_the_state(part: Grader) -> bool:
    """Whether it looks at nothing that the agent said or called."""
    return isinstance(part, _STATE)


def is_judged(part: Grader) -> bool:
    """Whether a judge model is asked."""
    return isinstance(part, _JUDGES) or (isinstance(part, native.Composite) and part.aggregator.type == "llm_grader")


def is_cheap(part: Grader) -> bool:
    """Whether grading takes neither a judge nor a program."""
    return not is_judged(part) and not isinstance(part, (*_STATE, *_PROGRAMS, native.Composite))


class _Piece(NamedTuple):
    """What one grader asks for."""

    whole: str | None = None  # The whole answer
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
        if isinstance(part, evals.AssertionOptions) and part.negate and not isinstance(part, native.Composite):
            continue  # what must not be is left out
        piece = _piece_of_the_answer(part) or _piece_of_the_calls(part)
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


def _piece_of_the_answer(part: Grader) -> _Piece | None:
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
        case native.OutputCheck(json_schema=None, matches=None):
            return _Piece(whole=part.equals, texts=part.contains)
        case native.OutputCheck(json_schema=None, matches=str(pattern)) if (literal := _literal(pattern)) is not None:
            return _Piece(whole=part.equals, texts=(*part.contains, literal))
    return None


def _literal(pattern: str) -> str | None:
    """The one text that an expression matches; `None` where it is more than a text."""
    bare = pattern.removeprefix("^").removesuffix("$")
    return re.sub(r"\\(.)", r"\1", bare) if _LITERAL.fullmatch(bare) else None


def _piece_of_the_calls(part: Grader) -> _Piece | None:
    calls: list[tuple[str, Mapping[str, Any]]]
    match part:
        case native.ToolCalls():
            entries = demands.required_tools(part)
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

    names: tuple[str, ...]  # What the first of them names
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
            case native.ToolCalls():
                for entry in part.forbidden:
                    name, given = (entry, {}) if isinstance(entry, str) else (entry.tool, entry.params)
                    command = given.get("command") if set(name) <= {"*"} else None
                    yield command if isinstance(command, str) else name
            case native.PolicyCheck():
                yield from part.deny_tools
            case evals.ToolUsed() if part.negate:
                yield from part.tools
