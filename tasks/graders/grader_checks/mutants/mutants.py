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
from dataclasses import dataclass
from typing import Final

from passgate.tasks.graders.grader_checks.mutants.answer_demands import lacking, wants_an_answer
from passgate.tasks.graders.grader_checks.mutants.call_demands import (
    counts_of,
    is_limit,
    names_tools,
    needs_call,
    stranger_to,
    wants_calls,
)
from passgate.tasks.graders.grader_checks.mutants.parts import is_cheap, is_judged, parts_of, sees_only_the_state
from passgate.tasks.graders.grader_checks.mutants.transcripts import (
    endless,
    renamed,
    silent,
    with_answer,
    without_calls,
)
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript

MOST_SINGLE_CALLS: Final = 12
"""Calls of one transcript that are dropped and swapped one by one."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
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
    speechless = not good.tool_calls
    yield Mutant(
        kind="empty answer",
        what="the answer is empty",
        transcript=silent(good),
        # Judges are not asked about an agent that neither says nor does anything: they must all say no.
        hits=lambda part: wants_an_answer(part) or (speechless and is_judged(part)),
        looks=lambda part: not sees_only_the_state(part),
    )
    half = len(good.output) // 2
    cuts = [cut for part in parts if (cut := lacking(part, good.output)) is not None]
    kept = min([half, *cuts])
    if cuts and kept > 0:
        yield Mutant(
            kind="truncated output",
            what=f"the answer ends after {kept} of {len(good.output)} characters",
            transcript=with_answer(good, good.output[:kept]),
            hits=lambda part: lacking(part, good.output) is not None,
            looks=_looks_at_words,
        )


def _of_the_calls(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    calls = good.tool_calls
    if not calls:
        return
    stranger = stranger_to(parts)
    everywhere = range(len(calls))
    yield Mutant(
        kind="dropped step",
        what="no tool is called",
        transcript=without_calls(good, everywhere),
        hits=wants_calls,
        looks=_looks_at_words,
    )
    yield Mutant(
        kind="swapped tool",
        what=f"every call is one of {stranger}",
        transcript=renamed(good, everywhere, stranger),
        hits=lambda part: names_tools(part, stranger),
        looks=_looks_at_words,
    )
    for place in everywhere[:MOST_SINGLE_CALLS] if len(calls) > 1 else ():
        yield from _of_one_call(good, place, stranger)


def _of_one_call(good: Transcript, place: int, stranger: str) -> Iterator[Mutant]:
    tool = good.tool_calls[place].tool

    def hits(part: Grader) -> bool:
        return needs_call(part, good.tool_calls, place, stranger)

    changed = {
        "dropped step": (f"the call {place + 1}, of {tool}, is gone", without_calls(good, [place])),
        "swapped tool": (f"the call {place + 1} is one of {stranger}, not {tool}", renamed(good, [place], stranger)),
    }
    for kind, (what, transcript) in changed.items():
        yield Mutant(kind=kind, what=what, transcript=transcript, hits=hits, looks=is_cheap)


def _endless(parts: Sequence[Grader], good: Transcript) -> Iterator[Mutant]:
    limits = [part for part in parts if is_limit(part)]
    if not limits:
        return
    number = 10 + 2 * max((count for part in limits for count in counts_of(part)), default=0)
    yield Mutant(
        kind="endless trial",
        what=f"the same failing call {number} times, at immense cost",
        transcript=endless(good, stranger_to(parts), number),
        hits=is_limit,
        looks=is_cheap,
    )


def _looks_at_words(part: Grader) -> bool:
    return not sees_only_the_state(part) and not is_judged(part)
