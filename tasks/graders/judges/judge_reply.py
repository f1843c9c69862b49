"""What a judge's answer must look like, and reading it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import Check
from passgate.tasks.model.json_values import parse_json

LONGEST_REPLY: Final = 200_000
_FENCE: Final = "```"
_Mark = TypeVar("_Mark")


class AssertionMark(Frozen):
    assertion: int
    passed: bool
    reason: str


class AssertionReply(Frozen):
    """The reply to numbered assertions."""

    checks: tuple[AssertionMark, ...]


class ScoreReply(Frozen):
    """The reply where there are no assertions."""

    # Not every endpoint that can hold a model to a schema knows bounds of numbers.
    score: Annotated[float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})]
    reason: str


class Mark(NamedTuple):
    """What a judge said: a score from 0 to 1 and, where it was asked for them, a check per assertion."""

    score: float
    reason: str
    checks: tuple[Check, ...]


class UnusableReplyError(MeasurementError):
    """A reply that is no mark. `problem` says why, in words of ours alone."""

    def __init__(self, problem: str, reply: str) -> None:
        self.problem = problem
        super().__init__(f"the judge's reply is unusable: {problem}. The reply: {shorten(reply, 500)!r}")


def reply_schema(assertions: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of a reply: every key is required and no other allowed, as strict endpoints ask for it."""
    return _schema_of(AssertionReply if assertions else ScoreReply)


@cache
def _schema_of(model: type[Frozen]) -> dict[str, Any]:
    return model.model_json_schema()


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys and no other, as strict endpoints ask for it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(reply: str, assertions: Sequence[str]) -> Mark:
    """The mark in a judge's reply: a JSON object alone, or alone in a code fence.

    Raises `UnusableReplyError` for anything else: a reply that has to be interpreted is no measurement.
    """
    try:
        document = _document(reply)
        if assertions:
            return _assertion_mark(AssertionReply.model_validate_json(document, strict=True), assertions)
        mark = ScoreReply.model_validate_json(document, strict=True)
    except ValidationError as error:
        raise UnusableReplyError("; ".join(_problem(entry) for entry in error.errors()[:3]), reply) from None
    except ValueError as error:
        raise UnusableReplyError(str(error), reply) from None
    return Mark(mark.score, shorten(mark.reason), ())


def read_object(reply: str, read: Callable[[Any], _Mark]) -> _Mark:
    """What `read` makes of the JSON in a judge's reply, which stands alone or alone in a code fence.

    Raises `UnusableReplyError` when there is no such JSON, or when `read` raises `ValueError`.
    """
    try:
        return read(parse_json(_document(reply)))
    except ValueError as error:
        raise UnusableReplyError(str(error), reply) from None


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


def _problem(entry: ErrorDetails) -> str:
    """What is wrong at one place. A key that nobody asked for is not repeated: it may be made to be read."""
    if entry["type"] == "extra_forbidden":
        return "it has a key that was not asked for"
    place = ".".join(map(str, entry["loc"]))
    return f"{place}: {entry['msg']}" if place else entry["msg"]
