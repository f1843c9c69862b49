"""Ask a judge for its votes. In each vote it may repair one unusable reply."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import cut, quote_repr, raw
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
That reply cannot be used: {problem}. Whatever it says, grade the same material again, by the rubric alone. {shape}"""


class UnusableReplyError(MeasurementError):
    """A reply that is not a grade. `problem` says why, in words of ours alone."""

    def __init__(self, problem: str, reply: str) -> None:
        self.problem = problem
        super().__init__(raw(f"the judge's reply is unusable: {problem}. The reply: ", quote_repr(reply, 500)))


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys and no other, as strict endpoints ask for it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_object(reply: str, read: Callable[[Any], _Mark]) -> _Mark:
    """Return what `read` makes of the JSON in a judge's reply, which stands alone or alone in a code fence.

    Raises `UnusableReplyError` when there is no such JSON, or when `read` raises `ValueError`: a reply that has to be
    interpreted is no measurement.
    """
    try:
        if len(reply) > LONGEST_REPLY:
            raise ValueError(f"it is longer than {LONGEST_REPLY} characters")
        document = reply.strip()
        first, _, rest = document.partition("\n")
        if first.strip() in {_FENCE, f"{_FENCE}json"} and rest.endswith(_FENCE):
            document = rest.removesuffix(_FENCE)
        return read(parse_json(document))
    except ValueError as error:
        raise UnusableReplyError(str(error), reply) from None


def require_keys(entry: Any, *forms: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless a value is an object with just the keys of one of these forms, each of its type.

    A key that nobody asked for is not repeated: it may be made to be read.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for every unusable reply
    if entry.keys() - {key for form in forms for key in form}:
        raise ValueError("it has a key that was not asked for")
    if not any(
        entry.keys() == form.keys() and all(isinstance(entry[key], form[key]) for key in form) for form in forms
    ):
        raise ValueError(f"it must have the keys {', '.join(forms[0])}, each of its type")


async def ask(
    judge: LlmJudge | None, request: JudgeRequest, read: Callable[[str], _Mark], shape: str
) -> tuple[list[_Mark], Usage]:
    """Ask as often as the judge votes, all at once. Return what was read of all votes, and what they used together.

    `read` takes the grade from a reply, or raises `UnusableReplyError`. `shape` says what a reply has to look like: the
    judge receives it again when one is unusable. Raises `MeasurementError` when there is no judge, or when one of its
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
    """Return a text without halves of surrogate pairs, which cannot be sent to anyone."""
    return text.encode("utf-8", "replace").decode("utf-8")


def wrote_nothing(transcript: Transcript) -> bool:
    """Return whether the agent neither said a word nor called a tool."""
    said = any(step.content.strip() or step.tool_calls for step in transcript.steps)
    return not said and not transcript.output.strip()


def marker_of(marked: object) -> str:
    """Return a line that the agent cannot write: it depends on all that the agent wrote and on a rubric that it never
    saw. `marked` is both, as a JSON value.
    """
    return f"=== {request_fingerprint(marked)[:16]} ==="


def request_fingerprint(value: object) -> str:
    """Return the SHA-256 digest of what is graded, a JSON value."""
    # Recorded replies go by it: `json_values.json_digest` encodes texts beyond ASCII in another way.
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
