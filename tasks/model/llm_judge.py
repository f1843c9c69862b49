"""What a model-based grader asks and who answers it."""

from typing import Any, Literal, Protocol

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Usage


class JudgeMessage(Frozen):
    role: Literal["system", "user", "assistant"]
    content: str


class JudgeRequest(Frozen):
    """One question to a judge model."""

    messages: tuple[JudgeMessage, ...]
    fingerprint: str
    """Digest of what is marked and by which rubric, not of how the question is worded: recorded replies go by it."""
    reply_schema: dict[str, Any] | None = None
    """The JSON Schema of the answer, for endpoints that can hold a model to one."""


class JudgeReply(Frozen):
    """What a judge answered and what that used."""

    text: str
    usage: Usage = Usage()


class LlmJudge(Protocol):
    """Someone who marks rubrics."""

    @property
    def name(self) -> str:
        """What reports call the judge."""

    @property
    def votes(self) -> int:
        """How often it is asked about the same thing."""

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """The judge's answer. Raises `MeasurementError` when there is none to be had."""

    async def close(self) -> None:
        """Give back what it holds. Nobody asks it any more."""
