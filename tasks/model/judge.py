"""What a model-based grader asks and who answers it."""

from typing import Literal, Protocol

from passgate.tasks.model.base import Frozen


class JudgeMessage(Frozen):
    role: Literal["system", "user"]
    content: str


class JudgeRequest(Frozen):
    """One question to a judge model."""

    messages: tuple[JudgeMessage, ...]
    fingerprint: str
    """Digest of what is marked and by which rubric, not of how the question is worded: recorded replies go by it."""


class Judge(Protocol):
    """Someone who marks rubrics."""

    @property
    def name(self) -> str:
        """What reports call the judge."""

    async def reply(self, request: JudgeRequest) -> str:
        """The judge's answer as text. Raises `MeasurementError` when there is none to be had."""
