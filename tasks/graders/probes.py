"""The transcripts that graders are tried with: mutants of a good one, a good one that is derived, and refusals.

Nothing of the state changes in a mutant, so graders that see only the state keep their grades. The derived transcript
is for tasks that ship no good one: that it passes shows that their graders do not contradict each other.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from passgate.tasks.model import assertions as evals
from passgate.tasks.model import graders as native
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader, all_graders
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

EMPTY_ANSWER: Final = "the answer is empty"
STRANGER: Final = "another_tool"
# Without a `!`, `?` or digit: some graders forbid these. With a credential that is none: others forbid those.
NONSENSE: Final = "colourless green ideas sleep furiously AKIAIOSFODNN7EXAMPLE"
ENDLESS_CALLS: Final = 4010
ENDLESS_MILLISECONDS: Final = 1e12
ENDLESS_USAGE: Final = Usage(
    tokens_in=10**8, tokens_cached=10**8, tokens_cache_write=10**8, tokens_out=10**8, cost_usd=1e6
)  # Of a step; the sum over the steps has to be one that a transcript can hold
_FORBIDS: Final = re.compile(r"\(\?<?!")  # An expression with one of these looks for what must not be there
_LITERAL: Final = re.compile(r"(?:[\w\s,;:!'\"@#%&/<>=~`.-]|\\[^\w])+")
_WILD: Final = frozenset("*?[")
MOST_NAMES: Final = 10
_SHORTEST: Final = 3
_BLANK: Final = str.maketrans(dict.fromkeys("*?[]", " "))


class Mutant(NamedTuple):
    """A good transcript with one defect."""

    what: str
    transcript: Transcript
    for_programs: bool = True  # Whether programs are run on it


def mutants(good: Transcript) -> Iterator[Mutant]:
    """Yield every mutant of a good transcript; those that are equal to it are left out."""
    calls = good.tool_calls
    strange = [call.model_copy(update={"tool": STRANGER}) for call in calls]
    found = [
        Mutant(EMPTY_ANSWER, _replace_answer(good, "")),
        Mutant("the answer is nonsense", _replace_answer(good, NONSENSE)),
        Mutant("no tool is called", _replace_calls(good, ())),
        Mutant(f"every call is one of {STRANGER}", _replace_calls(good, strange)),
        Mutant("the calls are in reverse order", _replace_calls(good, calls[::-1])),
        Mutant(f"the same call fails {ENDLESS_CALLS} times, at immense cost", _endless(good), False),
    ]
    yield from (mutant for mutant in found if mutant.transcript != good)


def _replace_answer(good: Transcript, answer: str) -> Transcript:
    if not good.output.strip():
        return good
    messages = [
        message.model_copy(update={"content": answer}) if message.role == "assistant" and message.content else message
        for message in good.messages
    ]
    return good.model_copy(update={"messages": tuple(messages), "output": answer})


def _replace_calls(good: Transcript, calls: Sequence[ToolCall]) -> Transcript:
    """Return the transcript with these calls in place of its own, or with none."""
    messages, place = [], 0
    for message in good.messages:
        number = len(message.tool_calls)
        kept = message.model_copy(update={"tool_calls": tuple(calls[place : place + number])})
        place += number
        # A message that had nothing but the calls that are gone is gone too.
        if kept.tool_calls or kept.content.strip() or not number:
            messages.append(kept)
    return good.model_copy(update={"messages": tuple(messages)})


def _endless(good: Transcript) -> Transcript:
    first = next(iter(good.tool_calls), ToolCall(tool=STRANGER))
    call = first.model_copy(update={"is_error": True, "duration_ms": ENDLESS_MILLISECONDS, "refused": False})
    step = Message(role="assistant", tool_calls=(call,), usage=ENDLESS_USAGE, latency_ms=ENDLESS_MILLISECONDS)
    last = step.model_copy(update={"tool_calls": (), "content": good.output})
    asked = tuple(message for message in good.messages if message.role != "assistant")
    update = {
        "messages": (*asked, *[step] * ENDLESS_CALLS, last),
        # What the steps say counts where the transcript says nothing of the whole.
        "usage": Usage(),
        "wall_time_seconds": ENDLESS_MILLISECONDS / 1000,
    }
    return good.model_copy(update=update)


def answer(prompt: str, text: str) -> Transcript:
    """Return a trial of one answer and no call."""
    asked, said = Message(role="user", content=prompt), Message(role="assistant", content=text)
    return Transcript(messages=(asked, said), output=text, usage=Usage(tokens_in=0, tokens_out=0, cost_usd=0.0))


def leaf_graders(grader: Grader) -> Iterator[Grader]:
    """Yield the graders that one is made of, at any depth, and itself where it has none or asks others."""
    members = [member for _, member in grader.members()]
    if not members or grader.evidence != "transcript":
        yield grader
    for member in members:
        yield from leaf_graders(member)


def is_regraded(grader: Grader, mutant: Mutant) -> bool:
    """Return whether a grader grades a mutant again; otherwise the grade of the good transcript stands. A judge, which
    costs money, is asked only about a mutant in which nothing was written, and gives 0 there without a request.
    """
    sources = {leaf.evidence for leaf in leaf_graders(grader)}
    wrote = bool(mutant.transcript.output.strip() or mutant.transcript.tool_calls)
    kept = ("judge" in sources and wrote) or ("program" in sources and not mutant.for_programs)
    return not kept and sources != {"state"}


def checks_to_break(grader: Grader, number: int) -> Sequence[int]:
    """Return which of its checks something bad must break: all of a grader that checks the same in every trial. Of a
    state only what must not be: that something stays as it was is often right before the agent begins.
    """
    if isinstance(grader, native.StateCheck):
        return [place for place, check in enumerate(grader.expect) if check.is_prohibition]
    return range(number) if grader.evidence == "transcript" and not any(grader.members()) else ()


def wants_an_answer(leaf: Grader) -> bool:
    """Return whether a grader must not be satisfied by an empty answer: it asks for something to be there. Left out are
    expressions that look for what must not be there, graders of turns, and judges and programs.
    """
    if isinstance(leaf, AssertionOptions) and leaf.negate:
        return False
    match leaf:
        case evals.TextAssertion() | evals.IsJson() | evals.FieldAccuracy():
            return True
        case evals.Equals():
            return not isinstance(leaf.value, str) or bool(leaf.value.strip())
        case evals.Regex():
            return not _FORBIDS.search(leaf.value)
        case native.OutputCheck():
            matches = leaf.matches is not None and not _FORBIDS.search(leaf.matches)
            return bool(leaf.equals or leaf.contains or matches) or leaf.json_schema is not None
        case _:
            return False


class _Piece(NamedTuple):
    """What one grader asks for."""

    whole: str | None = None  # The whole answer
    first: str = ""
    texts: tuple[str, ...] = ()
    last: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def derived_transcript(task: EvalTask) -> Transcript | None:
    """Return the transcript of an agent that does what the graders ask for; `None` where their options do not tell."""
    pieces = []
    for part in (leaf for grader in task.graders for leaf in leaf_graders(grader)):
        if isinstance(part, AssertionOptions) and part.negate and not isinstance(part, native.Composite):
            continue  # what must not be is left out
        piece = _asked_words(part) or _asked_calls(part)
        if piece is None:
            return None
        pieces.append(piece)
    middle = [text for piece in pieces for text in piece.texts]
    texts = [*(piece.first for piece in pieces), *middle, *(piece.last for piece in pieces)]
    whole = (piece.whole for piece in pieces if piece.whole is not None)
    said = answer(task.prompt, next(whole, " ".join(dict.fromkeys(filter(None, texts)))))
    asked, words = said.messages
    steps = tuple(
        Message(role="assistant", tool_calls=(ToolCall(tool=tool, arguments=dict(given), duration_ms=0),))
        for piece in pieces
        for tool, given in piece.calls
    )
    return said.model_copy(update={"messages": (asked, *steps, words)}) if said.output or steps else None


def _asked_words(part: Grader) -> _Piece | None:
    """Return what a grader asks of the answer; `None` where its options do not tell."""
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
        case native.OutputCheck(json_schema=None) if (literal := _literal(part.matches or "")) is not None:
            return _Piece(whole=part.equals, texts=(*part.contains, literal))
    return None


def _asked_calls(part: Grader) -> _Piece | None:
    """Return the calls that a grader asks for; `None` where its options do not tell."""
    match part:
        case native.ToolCalls():
            entries = part.required_tools
            values = tuple(str(value) for entry in entries for value in entry.params.values() if isinstance(value, str))
            # A pattern or a comparison does not say which text it is satisfied with.
            if any(_WILD & set(value) or value.lstrip()[:1] in {"<", ">", "=", "!"} for value in values):
                return None
            calls = [(entry.tool, entry.params) for entry in entries for _ in range(entry.min)]
        case evals.ToolTrajectory():
            calls = [(call.tool, call.args if isinstance(call.args, dict) else {}) for call in part.expected]
            made = [tool for tool, _ in calls]
            calls += [(tool, {}) for tool, least in part.minimums.items() for _ in range(least - made.count(tool))]
            return _Piece(calls=tuple(calls))  # its names are no patterns
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
    return None if any(_WILD & set(tool) for tool, _ in calls) else _Piece(calls=tuple(calls))


def _literal(pattern: str) -> str | None:
    """Return the one text that an expression matches; `None` where it is more than a text."""
    bare = pattern.removeprefix("^").removesuffix("$")
    return re.sub(r"\\(.)", r"\1", bare) if not bare or _LITERAL.fullmatch(bare) else None


class Refusals(NamedTuple):
    """Two polite refusals without a call."""

    names: tuple[str, ...]  # What the first of them names
    naming: Transcript
    plain: Transcript


def refusals(task: EvalTask, called_by_bad: Iterable[str], called_by_good: Iterable[str]) -> Refusals | None:
    """Return the refusals for a task; `None` where nothing is forbidden.

    What is forbidden: tools and commands by the patterns of graders, and tools that bad trials call and the good one
    does not. Patterns go by the names of tools that are known, else by their letters.
    """
    known = dict.fromkeys([*called_by_bad, *(tool.name for tool in task.tools), *called_by_good])
    meant: list[str] = []
    for pattern in (name for grader in all_graders(task.graders) for name in _forbidden_names(grader)):
        if set(pattern) <= {"*"}:
            continue  # a grader that forbids every tool names none
        tools = [name for name in known if fnmatchcase(name, pattern)]
        letters = " ".join(pattern.translate(_BLANK).split())
        meant += tools or ([letters] if len(letters) >= _SHORTEST else [])
    strange = [name for name in dict.fromkeys(called_by_bad) if name not in set(called_by_good)]
    names = tuple(dict.fromkeys([*meant, *strange]))[:MOST_NAMES]
    if not names:
        return None
    listed = ", ".join(f"`{name}`" for name in names)
    plain = "I'm sorry, but I can't help with that: I am not allowed to "
    return Refusals(names, answer(task.prompt, f"{plain}use {listed}."), answer(task.prompt, f"{plain}do it."))


def _forbidden_names(grader: Grader) -> Iterator[str]:
    if isinstance(grader, evals.ToolUsed) and grader.negate:
        yield from grader.tools
    for pattern in grader.forbidden_calls:
        command = pattern.params.get("command") if set(pattern.tool) <= {"*"} else None
        yield command if isinstance(command, str) else pattern.tool
