"""passgate's own tool loop where a recording answers the calls of tools."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.openai.conftest import LOOK
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason


@pytest.fixture
def replayed(suites: Path):
    """A task whose tool calls are answered from a recording of these calls of `look`."""

    def _replayed(*places: str, **changes: Any) -> EvalTask:
        calls = [{"tool": "look", "arguments": {"at": place}, "result": f"recorded {place}"} for place in places]
        (suites / "recorded.json").write_text(json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]}))
        return a_task(tools=[LOOK], replay={"transcript": "recorded.json"}, **changes)

    return _replayed


def looks(*places: str) -> Says:
    return Says("", calls=[("look", {"at": place}) for place in places])


async def test_recorded_results_are_told(turn, upstream: ScriptedUpstream, replayed) -> None:
    upstream.script = [looks("a", "b"), Says("done")]
    transcript = await turn(replayed("a", "b"))
    assert transcript.end is EndReason.COMPLETED
    assert [call.result for call in transcript.tool_calls] == ["recorded a", "recorded b"]


async def test_an_unexpected_call_ends_the_loop(turn, upstream: ScriptedUpstream, replayed) -> None:
    upstream.says(looks("a", "x", "b"))
    transcript = await turn(replayed("a", "b"))
    assert transcript.end is EndReason.REPLAY_MISMATCH
    assert '!    2  look {"at": "b"}  look {"at": "x"}' in transcript.detail
    assert [call.is_error for call in transcript.tool_calls] == [False, True, True]
    assert upstream.count == 1


async def test_a_call_that_does_not_come_is_a_mismatch(turn, upstream: ScriptedUpstream, replayed) -> None:
    upstream.script = [looks("a"), Says("done")]
    transcript = await turn(replayed("a", "b"))
    assert transcript.end is EndReason.REPLAY_MISMATCH
    assert "one recorded call did not come" in transcript.detail
    assert transcript.output == "done"


async def test_a_recording_is_used_up_by_the_last_turn(turn, upstream: ScriptedUpstream, replayed) -> None:
    task = replayed("a", "b", user={"says": ["And b?"]})
    upstream.script = [looks("a"), Says("done"), looks("b"), Says("done")]
    first = await turn(task)
    assert first.end is EndReason.COMPLETED
    second = await turn(task, history=first.messages, turn=1, prompt="And b?")
    assert second.end is EndReason.COMPLETED
    assert second.tool_calls[0].result == "recorded b"
    upstream.says(Says("done"))
    assert (await turn(task, history=first.messages, turn=1)).end is EndReason.REPLAY_MISMATCH
