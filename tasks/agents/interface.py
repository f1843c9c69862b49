"""What every agent is, and what it is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from passgate.tasks.budgets.access import ModelAccess
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import Message, Transcript


class AgentSandbox(Sandbox, Protocol):
    """A trial's sandbox as agents see it."""

    @property
    def network(self) -> bool:
        """Whether the task or its sandbox asks for the network."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One trial as an agent is asked to make it. A Python agent's function gets this as its only argument."""

    task_id: str
    trial: int
    prompt: str
    """What the user says now; in a conversation of several turns, the newest message."""
    inputs: Mapping[str, Any]
    workspace: Path
    budgets: Budgets
    turn: int = 0
    """From 0; above it in a conversation of several turns."""
    history: tuple[Message, ...] = ()
    """What was said before this turn, by both sides."""
    session: str = ""
    """The same text in every turn of a trial, and in no other trial."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that lead to the models, `OPENAI_BASE_URL` among them; also set while the agent runs."""


class Agent(Protocol):
    """A system under test."""

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Answer one turn of a trial in at most `seconds`.

        Gives what happened in this turn. What the agent does wrong is in the transcript (`end`); raises
        `MeasurementError` when it is not the agent's fault.
        """
