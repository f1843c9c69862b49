"""What graders demand of the final answer."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import regress

from passgate.tasks.model.assertions import Equals, FieldAccuracy, IsJson, Regex, TextAssertion
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader, OutputCheck
from passgate.tasks.model.javascript_regex import engine_flags

_FORBIDS: Final = ("(?!", "(?<!")


def wants_an_answer(part: Grader) -> bool:
    """Whether it must not be satisfied by an empty answer: it asks for something to be there.

    Left out are expressions that look for what must not be there, graders of turns, and judges and programs: what they
    go by is their own matter.
    """
    if isinstance(part, AssertionOptions) and part.negate:
        return False
    match part:
        case TextAssertion() | IsJson() | FieldAccuracy():
            return True
        case Equals():
            return not isinstance(part.value, str) or bool(part.value.strip())
        case Regex():
            return not _forbids(part.value)
        case OutputCheck():
            matches = part.matches is not None and not _forbids(part.matches)
            return bool(part.equals or part.contains or matches) or part.json_schema is not None
        case _:
            return False


def _forbids(pattern: str) -> bool:
    return any(sign in pattern for sign in _FORBIDS)


def lacking(part: Grader, answer: str) -> int | None:
    """The most characters of a good answer's beginning that lack what is asked for; `None` when that cannot be told,
    or when nothing of this kind is asked.
    """
    if not wants_an_answer(part):
        return None
    match part:
        case TextAssertion():
            values = (part.value,) if isinstance(part.value, str) else part.value
            return _before_texts(answer, values, ignore_case=part.type.startswith("i"))
        case Equals():
            return len(answer.strip()) - 1
        case Regex():
            found = regress.Regex(part.value, engine_flags(part.flags)).find(answer)
            return found.range().start or None if found else None
        case IsJson():
            return len(answer.rstrip()) - 1 if answer.strip()[:1] in {"{", "[", '"'} else None
        case FieldAccuracy():
            return min((place for sign in "{[" if (place := answer.find(sign)) > 0), default=None)
        case OutputCheck():
            return min((cut for cut in _output_cuts(part, answer) if cut is not None), default=None)
        case _:
            return None


def _output_cuts(part: OutputCheck, answer: str) -> Iterator[int | None]:
    if part.equals:
        yield len(answer.strip()) - 1
    if part.contains:
        yield _before_texts(answer, part.contains, ignore_case=part.ignore_case)
    if part.matches is not None and not _forbids(part.matches):
        found = re.search(part.matches, answer, re.IGNORECASE if part.ignore_case else 0)
        yield found.start() or None if found else None


def _before_texts(answer: str, texts: Sequence[str], *, ignore_case: bool) -> int | None:
    """Where the first of these texts lacks its last character."""
    folded = answer.casefold() if ignore_case else answer
    if len(folded) != len(answer):
        return None
    wanted = [text.strip().casefold() if ignore_case else text.strip() for text in texts]
    ends = [folded.find(text) + len(text) for text in wanted if text and text in folded]
    return min(ends) - 1 if ends else None
