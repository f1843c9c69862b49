"""What a judge's answer must look like, and reading it."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, ValidationError

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.texts import shorten
from passgate.tasks.graders.values import parse_json
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import Check

LONGEST_REPLY: Final = 200_000
_FENCE: Final = "```"


class AssertionMark(Frozen):
    assertion: int
    passed: bool
    reason: str


class AssertionReply(Frozen):
    """The reply to numbered assertions."""

    checks: tuple[AssertionMark, ...]


class ScoreReply(Frozen):
    """The reply where there are no assertions."""

    score: Annotated[float, Field(ge=0, le=1)]
    reason: str


class Mark(NamedTuple):
    """What a judge said: a score from 0 to 1 and, where it was asked for them, a check per assertion."""

    score: float
    reason: str
    checks: tuple[Check, ...]


def read_reply(reply: str, assertions: Sequence[str]) -> Mark:
    """The mark in a judge's reply: a JSON object alone, or alone in a code fence.

    Raises `MeasurementError` for anything else: a reply that has to be interpreted is no measurement.
    """
    try:
        document = _document(reply)
        if assertions:
            return _assertion_mark(AssertionReply.model_validate_json(document, strict=True), assertions)
        mark = ScoreReply.model_validate_json(document, strict=True)
    except ValidationError as error:
        problems = "; ".join(f"{_place(entry['loc'])}{entry['msg']}" for entry in error.errors()[:3])
        raise _unusable(reply, problems) from None
    except ValueError as error:
        raise _unusable(reply, str(error)) from None
    return Mark(mark.score, shorten(mark.reason), ())


def _document(reply: str) -> str:
    if len(reply) > LONGEST_REPLY:
        raise ValueError(f"it is longer than {LONGEST_REPLY} characters")
    document = reply.strip()
    first, _, rest = document.partition("\n")
    if first.strip() in {_FENCE, f"{_FENCE}json"} and rest.endswith(_FENCE):
        document = rest.removesuffix(_FENCE)
    parse_json(document)
    return document


def _assertion_mark(reply: AssertionReply, assertions: Sequence[str]) -> Mark:
    marks = {mark.assertion: mark for mark in reply.checks}
    if sorted(mark.assertion for mark in reply.checks) != list(range(1, len(assertions) + 1)):
        raise ValueError(f"it must mark each of the {len(assertions)} assertions once")
    checks = tuple(
        Check(passed=marks[number].passed, message=shorten(f"{assertion}: {marks[number].reason}"))
        for number, assertion in enumerate(assertions, start=1)
    )
    return Mark(sum(check.passed for check in checks) / len(checks), "", checks)


def _place(location: tuple[Any, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""


def _unusable(reply: str, problem: str) -> MeasurementError:
    return MeasurementError(f"the judge's reply is unusable: {problem}. It said: {shorten(reply, 500)!r}")
