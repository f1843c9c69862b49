"""Turns of passgate's own tool loop in real sandboxes, against a scripted provider."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.meters import OverHttp
from tests.upstream import ScriptedUpstream

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.openai import OpenAiAgent
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentKind, AgentSpec, CompletionOptions
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, Transcript

LOOK = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    "command": 'echo "seen $PASSGATE_TOOL_ARGUMENTS"',
}
FAIL = {"name": "fail", "description": "Fails.", "command": "echo why >&2; exit 3"}


def spec_of(**completion: Any) -> AgentSpec:
    return AgentSpec(kind=AgentKind.OPENAI, target="model-1", completion=CompletionOptions(**completion))


@pytest.fixture
def left_behind() -> list[str]:
    """The files in the workspace after a turn."""
    return []


@pytest.fixture
def turn(sandbox_of, suites: Path, upstream: ScriptedUpstream, left_behind: list[str]):
    """One turn of the loop in a sandbox of its own."""

    async def _turn(
        task: EvalTask | None = None,
        *,
        spec: AgentSpec | None = None,
        access: ModelAccess | None = None,
        history: Sequence[Message] = (),
        number: int = 0,
        prompt: str | None = None,
        seconds: float = 20,
    ) -> Transcript:
        task = task or a_task(tools=[LOOK, FAIL])
        agent = OpenAiAgent.from_spec(spec or spec_of(), suites)
        async with sandbox_of(task) as sandbox:
            attempt = Attempt(
                task_id=task.task_id,
                trial=0,
                prompt=prompt or task.prompt,
                inputs=task.inputs,
                workspace=sandbox.workspace,
                budgets=task.budgets,
                history=tuple(history),
                turn=number,
            )
            transcript = await agent.run(
                task, attempt, sandbox.for_the_agent, access or OverHttp(upstream.openai_base_url), seconds=seconds
            )
            left_behind.extend(sorted(file.name for file in sandbox.workspace.iterdir()))
            return transcript

    return _turn
