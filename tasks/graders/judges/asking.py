"""Ask a judge for its votes. In each vote it may repair one unusable reply."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.programs.grader_reply import GraderReply
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge, RawCheck
from passgate.tasks.model.json_schema import json_schema
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import cut, quote, quote_repr, raw
from passgate.tasks.model.transcript import Transcript, Usage, total_usage

LONGEST_REPLY: Final = 200_000
_FENCE: Final = "```"
_Mark = TypeVar("_Mark")
NO_JUDGE: Final = (
    "no judge is configured: set judge.base_url and judge.model in gates.yaml, "
    "or PASSGATE_JUDGE_BASE_URL and PASSGATE_JUDGE_MODEL"
)
WROTE_NOTHING: Final = "the agent wrote nothing"
ONE_OBJECT: Final = "Reply with one JSON object and nothing else"
_LONGEST_REPEATED: Final = 4000  # Characters of an unusable reply that the judge is shown again
_REPAIR: Final = """\
That reply cannot be used: {problem}. Whatever it says, mark the same material again, by the rubric alone. {shape}"""


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


class UnusableReplyError(MeasurementError):
    """A reply that is no mark. `problem` says why, in words of ours alone."""

    def __init__(self, problem: str, reply: str) -> None:
        self.problem = problem
        super().__init__(raw(f"the judge's reply is unusable: {problem}. The reply: ", quote_repr(reply, 500)))


def reply_schema(assertions: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of a reply: every key is required and no other allowed, as strict endpoints ask for it."""
    return json_schema(AssertionReply if assertions else ScoreReply)


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these keys and no other, as strict endpoints ask for it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_reply(reply: str, assertions: Sequence[str]) -> GraderReply:
    """The mark in a judge's reply: a JSON object alone, or alone in a code fence.

    Raises `UnusableReplyError` for anything else: a reply that has to be interpreted is no measurement.
    """
    try:
        document = _document(reply)
        if not assertions:
            mark = ScoreReply.model_validate_json(document, strict=True)
            return GraderReply(mark.score, reason=quote(mark.reason))
        marks = sorted(AssertionReply.model_validate_json(document, strict=True).checks, key=lambda one: one.assertion)
        if [mark.assertion for mark in marks] != list(range(1, len(assertions) + 1)):
            raise ValueError(f"it must mark each of the {len(assertions)} assertions once")
    except ValidationError as error:
        problems = [
            # A key that nobody asked for is not repeated: it may be made to be read.
            "it has a key that was not asked for"
            if entry["type"] == "extra_forbidden"
            else f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}".removeprefix(": ")
            for entry in error.errors()[:3]
        ]
        raise UnusableReplyError("; ".join(problems), reply) from None
    except ValueError as error:
        raise UnusableReplyError(str(error), reply) from None
    checks = tuple(
        RawCheck(passed=mark.passed, message=quote(f"{assertion}: {mark.reason}"))
        for assertion, mark in zip(assertions, marks, strict=True)
    )
    return GraderReply(sum(check.passed for check in checks) / len(checks), checks)


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


async def ask(
    judge: LlmJudge | None, request: JudgeRequest, read: Callable[[str], _Mark], shape: str
) -> tuple[list[_Mark], Usage]:
    """Ask as often as the judge votes, all at once. The marks of all votes and what they used together.

    `read` takes the mark from a reply, or raises `UnusableReplyError`. `shape` says what a reply has to look like: the
    judge is told again when one is unusable. Raises `MeasurementError` when there is no judge, or when one of its
    replies is unusable, also after it was asked to repair it.
    """
    if judge is None:
        raise MeasurementError(NO_JUDGE)
    # Every vote ends before an error is raised: none goes on asking when the trial is over.
    settled = await asyncio.gather(
        *(_vote(judge, request, read, shape) for _ in range(judge.votes)), return_exceptions=True
    )
    votes = []
    for vote in settled:
        if isinstance(vote, BaseException):
            raise vote
        votes.append(vote)
    return [mark for mark, _ in votes], total_usage([usage for _, usage in votes])


async def _vote(
    judge: LlmJudge, request: JudgeRequest, read: Callable[[str], _Mark], shape: str
) -> tuple[_Mark, Usage]:
    reply = await judge.reply(request)
    try:
        return read(reply.text), reply.usage
    except UnusableReplyError as error:
        problem = error.problem
    said = cut(reply.text.strip(), _LONGEST_REPEATED) or "(nothing)"
    messages = (
        *request.messages,
        JudgeMessage(role="assistant", content=sendable(said)),
        JudgeMessage(role="user", content=_REPAIR.format(problem=problem, shape=shape)),
    )
    # The fingerprint stays: recorded replies go by it, and the same is marked.
    repaired = await judge.reply(request.model_copy(update={"messages": messages}))
    return read(repaired.text), total_usage([reply.usage, repaired.usage])


def sendable(text: str) -> str:
    """A text without halves of surrogate pairs, which cannot be sent to anyone."""
    return text.encode("utf-8", "replace").decode("utf-8")


def wrote_nothing(transcript: Transcript) -> bool:
    """Whether the agent neither said a word nor called a tool."""
    said = any(step.content.strip() or step.tool_calls for step in transcript.steps)
    return not said and not transcript.output.strip()


def marker_of(marked: object) -> str:
    """A line that the agent cannot write: it depends on all that the agent wrote and on a rubric that it never saw.
    `marked` is both, as a JSON value.
    """
    return f"=== {request_fingerprint(marked)[:16]} ==="


def request_fingerprint(value: object) -> str:
    """The SHA-256 digest of what is marked, a JSON value."""
    # Recorded replies go by it: `json_values.digest_of` encodes texts beyond ASCII in another way.
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
