"""Turns of passgate's own tool loop in real sandboxes, against a scripted provider."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.meters import OverHttp
from tests.unit.agents.conftest import one_turn
from tests.upstream import ScriptedUpstream

from passgate.tasks.agents.openai import OpenAiAgent
from passgate.tasks.agents.tools import make_toolbox
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.metering.trial_tools import TrialTools
from passgate.tasks.model.agent import AgentKind, AgentSpec, CompletionOptions
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript

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
        access: TrialMeter | OverHttp | None = None,
        **changes: Any,
    ) -> Transcript:
        task = task or a_task(tools=[LOOK, FAIL])
        agent = OpenAiAgent.from_spec(spec or spec_of(), suites)
        asked = access or OverHttp(upstream.openai_base_url)
        async with sandbox_of(task) as sandbox:
            toolbox = make_toolbox(task, sandbox.for_the_agent, suites)
            trial = asked.trial if isinstance(asked, OverHttp) else asked
            tools = TrialTools(task.tools, toolbox, trial.ledger, trial.forbidden, trial.recorder)
            asked.tools = trial.tools = tools
            transcript = await one_turn(agent, task, sandbox, access=asked, tools=tools.descriptions, **changes)
            left_behind.extend(sorted(file.name for file in sandbox.workspace.iterdir()))
            return transcript

    return _turn
