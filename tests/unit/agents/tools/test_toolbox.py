"""Who answers the tool calls of a trial."""

import json
from pathlib import Path

import pytest
from tests.builders import a_task

from passgate.tasks.agents.tools import RecordedTools, SandboxTools, toolbox_of
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import Message, ToolCall

TOOLS = [{"name": "look", "description": "Looks.", "command": "echo seen"}]


async def test_a_task_without_a_recording_runs_its_tools(sandbox_of, suites: Path) -> None:
    task = a_task(tools=TOOLS)
    async with sandbox_of(task) as sandbox:
        toolbox = toolbox_of(task, sandbox, suites)
        assert isinstance(toolbox, SandboxTools)
        assert (await toolbox.call("look", {})).result == "seen\n"
    assert (toolbox.mismatch, toolbox.missing) == ("", "")


async def test_a_task_with_a_recording_runs_nothing(sandbox_of, suites: Path) -> None:
    calls = [{"tool": "look", "result": 1}, {"tool": "look", "result": 2}]
    (suites / "recorded.json").write_text(json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]}))
    task = a_task(tools=TOOLS, replay={"transcript": "recorded.json"})
    history = [Message(role="user"), Message(role="assistant", tool_calls=(ToolCall(tool="look", result=1),))]
    async with sandbox_of(task) as sandbox:
        toolbox = toolbox_of(task, sandbox, suites, history)
        assert isinstance(toolbox, RecordedTools)
        assert (await toolbox.call("look", {})).result == 2
    assert (toolbox.mismatch, toolbox.missing) == ("", "")


@pytest.mark.parametrize("content", [None, "", "[]"])
async def test_a_recording_that_cannot_be_read_cannot_be_measured(
    sandbox_of, suites: Path, content: str | None
) -> None:
    if content is not None:
        (suites / "recorded.json").write_text(content)
    task = a_task(tools=TOOLS, replay={"transcript": "recorded.json"})
    async with sandbox_of(task) as sandbox:
        with pytest.raises(MeasurementError, match=r"recorded\.json|not a t"):
            toolbox_of(task, sandbox, suites)
