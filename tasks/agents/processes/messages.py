"""What passgate and the processes of Python agents send each other: JSON, a line each.

What comes from a process is untrusted: the agent's code can write into every descriptor that its process has.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import ConfigDict

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.transcripts import MAX_TRANSCRIPT_BYTES
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.transcript import Transcript

STARTED: Final = b"\n"  # What a process sends before it runs any of the agent's code
MAX_REPLY_BYTES: Final = MAX_TRANSCRIPT_BYTES + 64 * 1024


class TurnRequest(Frozen):
    """One turn that a process is asked for."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    attempt: Attempt
    variables: Mapping[str, str]
    """What is set in the environment of the process."""


class TurnReply(Frozen):
    """What came of a turn."""

    transcript: Transcript | None
    """None if the function raised `MeasurementError`."""
    message: str = ""
    """The text of that error."""
    transient: bool = False
