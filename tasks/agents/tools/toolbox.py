"""What runs the tools of a task for an agent that lets passgate run them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.tools.outcome import ToolOutcome
from passgate.tasks.agents.tools.recorded_tools import RecordedTools, recording_of
from passgate.tasks.agents.tools.sandbox_tools import SandboxTools
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message


class Toolbox(Protocol):
    """Answers the tool calls of one turn."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What comes of a call; what goes wrong with it is an outcome too. Raises `MeasurementError` when the sandbox
        is broken.
        """

    @property
    def mismatch(self) -> str:
        """How a call differs from what had to be called; empty as long as none does."""

    @property
    def missing(self) -> str:
        """What had to be called and was not; empty when there is no such thing."""


def toolbox_of(task: EvalTask, sandbox: AgentSandbox, suites_folder: Path, history: Sequence[Message] = ()) -> Toolbox:
    """The recording of the task where it has one, which goes on after the calls of `history`; else its own tools.

    Raises `MeasurementError` for a recording that cannot be read.
    """
    if task.replay is None:
        return SandboxTools(task.tools, sandbox, suites_folder)
    recording = recording_of(task.replay, suites_folder)
    return RecordedTools(recording, task.replay.match, [call for message in history for call in message.tool_calls])
