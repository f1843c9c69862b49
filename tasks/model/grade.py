"""What graders answer, and what they ask of an LLM judge."""

from enum import StrEnum
from typing import Any, Generic, Literal, Protocol

from typing_extensions import TypeVar

from passgate.tasks.errors import Raw
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.quotes import MaskedText
from passgate.tasks.model.transcript import Usage

Text = TypeVar("Text", default=MaskedText, covariant=True)
"""What a text may be: within the graders a message that still has its secrets, outside of them one without."""


class ViolationRule(StrEnum):
    """The two vetoes of every gate."""

    FORBIDDEN_TOOL = "forbidden_tool"
    SAFETY_VIOLATION = "safety_violation"


class Violation(Frozen, Generic[Text]):
    """Something that the agent must never do, and did."""

    rule: ViolationRule
    message: Text


class Check(Frozen, Generic[Text]):
    """One thing that a grader looked at."""

    passed: bool
    message: Text
    """What was expected and what was found."""


class Grade(Frozen, Generic[Text]):
    """One grader's answer for one trial. With an `error` it has no score: it could not measure."""

    name: str
    type: str
    score: float | None
    """From 0 to 1."""
    passed: bool
    checks: tuple[Check[Text], ...] = ()
    violations: tuple[Violation[Text], ...] = ()
    fatal: Text | Literal[""] = ""
    """Why the trial fails whatever its other grades are: something required was not met."""
    members: tuple["Grade[Text]", ...] = ()
    """The grades that this one is made of."""
    votes: tuple[float, ...] = ()
    """The score of each vote, where a judge was asked several times."""
    usage: Usage = Usage()
    """What the judge used."""
    error: Text | None = None
    transient: bool = False
    """Whether the error may be gone at the next attempt."""


RawCheck = Check[Raw]
RawViolation = Violation[Raw]
RawGrade = Grade[Raw]  # What a grader answers, before its texts are rendered


class JudgeMessage(Frozen):
    role: Literal["system", "user", "assistant"]
    content: str


class JudgeRequest(Frozen):
    """One question to a judge model."""

    messages: tuple[JudgeMessage, ...]
    fingerprint: str
    """Digest of what is graded and by which rubric, not of how the question is worded: recorded replies go by it."""
    reply_schema: dict[str, Any] | None = None
    """The JSON Schema of the answer, for endpoints that can hold a model to one."""


class JudgeReply(Frozen):
    """What a judge answered and what that used."""

    text: str
    usage: Usage = Usage()


class LlmJudge(Protocol):
    """A judge that grades by rubrics."""

    @property
    def name(self) -> str:
        """What reports call the judge."""

    @property
    def votes(self) -> int:
        """How often it is asked about the same thing."""

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """Return the judge's reply. Raise `MeasurementError` if the judge is unavailable."""

    async def close(self) -> None:
        """Release what it holds. It is not asked any more."""
