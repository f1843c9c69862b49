"""The mutants of a good transcript, by five rules.

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
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from passgate.tasks.graders.grader_checks import demands
from passgate.tasks.model.assertions import CodeGrader, LlmGrader, Rubrics, ScriptAssertion, Unavailable
from passgate.tasks.model.graders import (
    Composite,
    DeterministicTests,
    Grader,
    LlmRubric,
    StateCheck,
    StaticAnalysis,
    Turns,
)
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

MOST_SINGLE_CALLS: Final = 12
"""Calls of one transcript that are dropped and swapped one by one."""
ENDLESS_MILLISECONDS: Final = 1e12
ENDLESS_USAGE: Final = Usage(
    tokens_in=10**8, tokens_cached=10**8, tokens_cache_write=10**8, tokens_out=10**8, cost_usd=1e6
)
"""Of a step; the sum over the steps has to be one that a transcript can hold."""
_STATE: Final = (DeterministicTests, StaticAnalysis, StateCheck)
_JUDGES: Final = (LlmRubric, LlmGrader, Rubrics)
_PROGRAMS: Final = (CodeGrader, ScriptAssertion, Unavailable)


class Mutant(NamedTuple):
    """A transcript made bad in one way."""

    kind: str
    what: str
    """What was done to it, in words."""
    transcript: Transcript
    hits: Callable[[Grader], bool]
    """Whether a part of a grader must notice."""
    looks: Callable[[Grader], bool]
    """Whether a part of a grader is asked again; the others keep the grades of the good transcript."""


def mutants_of(task: EvalTask, good: Transcript) -> Iterator[Mutant]:
    """Every mutant of a good transcript that differs from it, those that may count and milder ones."""
    parts = [part for grader in task.graders for part in parts_of(grader)]
    found = [*_of_the_answer(parts, good), *_of_the_calls(parts, good), *_endless(parts, good)]
    yield from (mutant for mutant in found if mutant.transcript != good)


def _of_the_answer(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
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


def _of_the_calls(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    calls = good.tool_calls
    if not calls:
        return
    stranger = demands.stranger_to(parts)
    everywhere = range(len(calls))
    silenced, swapped = _with_calls(good, everywhere, None), _with_calls(good, everywhere, stranger)
    yield Mutant("dropped step", "no tool is called", silenced, demands.wants_calls, _looks_at_words)
    named = partial(demands.names_tools, stranger=stranger)
    yield Mutant("swapped tool", f"every call is one of {stranger}", swapped, named, _looks_at_words)
    for place in everywhere[:MOST_SINGLE_CALLS] if len(calls) > 1 else ():
        yield from _of_one_call(good, place, stranger)


def _of_one_call(good: Transcript, place: int, stranger: str) -> Iterator[Mutant]:
    tool = good.tool_calls[place].tool

    def hits(part: Grader) -> bool:
        return demands.needs_call(part, good.tool_calls, place, stranger)

    gone, swapped = _with_calls(good, [place], None), _with_calls(good, [place], stranger)
    yield Mutant("dropped step", f"the call {place + 1}, of {tool}, is gone", gone, hits, is_cheap)
    yield Mutant("swapped tool", f"the call {place + 1} is one of {stranger}, not {tool}", swapped, hits, is_cheap)


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
    if not isinstance(grader, Composite | Turns):
        yield grader
        return
    if isinstance(grader, Turns):
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
    return isinstance(part, _JUDGES) or (isinstance(part, Composite) and part.aggregator.type == "llm_grader")


def is_cheap(part: Grader) -> bool:
    """Whether grading takes neither a judge nor a program."""
    return not is_judged(part) and not isinstance(part, (*_STATE, *_PROGRAMS, Composite))
