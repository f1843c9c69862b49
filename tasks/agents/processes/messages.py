"""What passgate and the processes of Python agents say to each other: JSON, a line each.

What comes from a process is untrusted: the agent's code can write into every descriptor that its process has.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.transcripts import LONGEST_DETAIL, MAX_TRANSCRIPT_BYTES
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Transcript

STARTED: Final = b"\n"  # What a process says before it runs any of the agent's code
MAX_REPLY_BYTES: Final = MAX_TRANSCRIPT_BYTES + 64 * 1024
MAX_DETAIL: Final = LONGEST_DETAIL


class TurnRequest(Frozen):
    """One turn that a process is asked for."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    attempt: Attempt
    variables: Mapping[str, str]
    """What is set in the process's environment."""


class TurnAnswered(Frozen):
    """The function has given an answer."""

    kind: Literal["answered"] = "answered"
    transcript: Transcript


class TurnCrashed(Frozen):
    """The function has raised."""

    kind: Literal["crashed"] = "crashed"
    detail: str


class TurnUnmeasurable(Frozen):
    """The function has raised `MeasurementError`."""

    kind: Literal["unmeasurable"] = "unmeasurable"
    message: str
    transient: bool = False


class TurnUnreadable(Frozen):
    """The function has given what is no answer, or what cannot be recorded."""

    kind: Literal["unreadable"] = "unreadable"
    detail: str


TurnReply = TurnAnswered | TurnCrashed | TurnUnmeasurable | TurnUnreadable
TURN_REPLY: Final[TypeAdapter[TurnReply]] = TypeAdapter(Annotated[TurnReply, Field(discriminator="kind")])


class ImportReport(Frozen):
    """What came of importing the agent."""

    problem: str = ""
    """Why it cannot be used; empty when it can."""


class ProcessEnded(Frozen):
    """A process and all that it had started have ended."""

    status: int | None
    """Its exit code, negative for a signal; `None` when nobody knows it any more."""
