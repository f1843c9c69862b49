"""What every agent is, and what it is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import Transcript


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
    inputs: Mapping[str, Any]
    workspace: Path
    budgets: Budgets


class Agent(Protocol):
    """A system under test."""

    async def run(self, task: EvalTask, trial: int, sandbox: AgentSandbox, *, seconds: float) -> Transcript:
        """Make one attempt at a task in at most `seconds`.

        What the agent does wrong is in the transcript (`end`); raises `MeasurementError` when it is not the
        agent's fault.
        """


def attempt_of(task: EvalTask, trial: int, sandbox: Sandbox) -> Attempt:
    """What an agent is told of a trial."""
    return Attempt(
        task_id=task.task_id,
        trial=trial,
        prompt=task.prompt,
        inputs=task.inputs,
        workspace=sandbox.workspace,
        budgets=task.budgets,
    )
