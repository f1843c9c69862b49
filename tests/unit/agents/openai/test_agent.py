"""passgate's own tool loop against a scripted provider: what it asks and runs, and what ends it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.openai.conftest import LOOK, spec_of
from tests.unit.conftest import LONG, LoopClock, Marked
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Silent, Slow, Status
from tests.upstream_shapes import Says
from tests.waiting import until

from passgate.tasks.agents.openai import OWN_KEYS, OpenAiAgent
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.transcript import EndReason, Message, ToolCall


async def test_an_answer_without_tools(turn, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("yes"))
    transcript = await turn(a_task())
    assert transcript.output == "yes"
    assert transcript.complete is True
    assert transcript.end is EndReason.COMPLETED
    assert [(message.role, message.content) for message in transcript.messages] == [
        ("user", "Say yes."),
        ("assistant", "yes"),
    ]
    (call,) = upstream.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer trial-key"
    assert call.body == {"model": "model-1", "messages": [{"role": "user", "content": "Say yes."}]}


async def test_tools_are_run_and_their_results_told(turn, upstream: ScriptedUpstream) -> None:
    upstream.script = [
        Says("I look.", calls=[("look", {"at": "a"}), ("fail", {})]),
        Says("", calls=[("look", {"at": "b"})]),
        Says("done"),
    ]
    transcript = await turn()
    first, second, last = transcript.steps
    assert [call.tool for call in first.tool_calls] == ["look", "fail"]
    assert first.tool_calls[0].result == 'seen {"at": "a"}\n'
    assert first.tool_calls[0].is_error is False
    assert (first.tool_calls[1].result, first.tool_calls[1].is_error) == ("exit code 3. why", True)
    assert all(0 < (call.duration_ms or 0) < 240_000 for call in transcript.tool_calls)
    assert second.tool_calls[0].arguments == {"at": "b"}
    assert (last.content, transcript.output) == ("done", "done")

    requests = [call.body for call in upstream.calls]
    assert requests[0]["tools"] == [
        {"type": "function", "function": {key: LOOK[key] for key in ("name", "description", "parameters")}},
        {
            "type": "function",
            "function": {
                "name": "fail",
                "description": "Fails.",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ]
    user, said, seen, failed = requests[1]["messages"]
    assert (user["role"], said["role"], said["content"]) == ("user", "assistant", "I look.")
    assert [call["id"] for call in said["tool_calls"]] == ["call_0_0", "call_0_1"]
    assert seen == {"role": "tool", "tool_call_id": "call_0_0", "content": 'seen {"at": "a"}\n'}
    assert failed == {"role": "tool", "tool_call_id": "call_0_1", "content": "exit code 3. why"}
    assert requests[2]["messages"][:4] == requests[1]["messages"]
    assert requests[2]["messages"][4]["content"] is None


async def test_calls_of_one_reply_run_side_by_side_and_keep_their_order(turn, upstream: ScriptedUpstream) -> None:
    meets = {
        "name": "meet",
        "description": "Waits for the others.",
        "command": "touch $$.$(date +%N).here; while [ $(ls *.here | wc -l) -lt 3 ]; do sleep 0.02; done; cat",
        "timeout_seconds": 240,
    }
    calls = [("meet", {"n": number}) for number in range(3)]
    upstream.script = [Says("", calls=calls), Says("done")]
    transcript = await turn(a_task(tools=[meets]))
    assert [call.result for call in transcript.tool_calls] == [{"n": 0}, {"n": 1}, {"n": 2}]
    told = upstream.calls[1].body["messages"][2:]
    assert [json.loads(message["content"]) for message in told] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_the_systems_message_comes_from_the_agent_and_the_task(turn, upstream: ScriptedUpstream) -> None:
    task = a_task(inputs={"prompt": "Say yes.", "system": "The desk is open."})
    transcript = await turn(task, spec=spec_of(system="You are kind."))
    (call,) = upstream.calls
    assert call.body["messages"][0] == {"role": "system", "content": "You are kind.\n\nThe desk is open."}
    assert transcript.messages[0].role == "system"


async def test_parameters_and_the_schema_of_the_answer(turn, upstream: ScriptedUpstream) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    task = a_task(inputs={"prompt": "Answer.", "output_schema": schema})
    await turn(task, spec=spec_of(parameters={"temperature": 0.5, "seed": 7}))
    (call,) = upstream.calls
    assert (call.body["temperature"], call.body["seed"]) == (0.5, 7)
    assert call.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize("key", OWN_KEYS)
def test_a_parameter_that_passgate_sets_is_refused(key: str, suites: Path) -> None:
    with pytest.raises(UsageError, match=f"completion.parameters.{key}: passgate sets this itself"):
        OpenAiAgent.from_spec(spec_of(parameters={key: 1}), suites)


def test_a_model_is_needed(suites: Path) -> None:
    with pytest.raises(UsageError, match="openai:MODEL"):
        OpenAiAgent.from_spec(AgentSpec(kind=AgentKind.OPENAI), suites)


def reply_with(message: dict[str, Any]) -> Status:
    return Status(200, body={"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", **message}}]})


def calls_with(arguments: Any, **extra: Any) -> Status:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": arguments}, **extra}
    return reply_with({"content": None, "tool_calls": [call], "refusal": None, "reasoning": "hm"})


@pytest.mark.parametrize("arguments", ['{"at": ', "[1]", '"a"', "nothing"])
async def test_malformed_arguments_are_told_to_the_model(turn, upstream: ScriptedUpstream, arguments: str) -> None:
    upstream.script = [calls_with(arguments), Says("sorry")]
    transcript = await turn()
    (call,) = transcript.tool_calls
    assert call.arguments == {"unparsed": arguments}
    assert call.is_error is True
    assert "they are not a JSON object" in call.result
    assert transcript.output == "sorry"
    assert upstream.calls[1].body["messages"][-1]["content"] == call.result


async def test_what_a_provider_adds_to_its_message_goes_back_to_it(turn, upstream: ScriptedUpstream) -> None:
    extra = {"extra_content": {"signature": "s"}}
    upstream.script = [calls_with('{"at": "a"}', **extra), Says("ok")]
    await turn()
    said = upstream.calls[1].body["messages"][1]
    assert said["tool_calls"][0]["extra_content"] == {"signature": "s"}
    assert said["reasoning"] == "hm"
    assert said["content"] is None
    assert "refusal" not in said


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        {"choices": []},
        {"choices": [{"message": 3}]},
        {"choices": [{"message": {"content": 3}}]},
    ],
)
async def test_a_reply_that_cannot_be_read_cannot_be_measured(turn, upstream: ScriptedUpstream, body: Any) -> None:
    upstream.says(Status(200, body=body))
    with pytest.raises(MeasurementError, match="the model's reply cannot be read"):
        await turn()


@pytest.mark.parametrize(
    ("status", "code", "end"),
    [
        (400, "budget_exceeded", EndReason.OVER_BUDGET),
        (400, "over_budget", EndReason.OVER_BUDGET),
        (400, "forbidden_call", EndReason.FORBIDDEN_CALL),
        (503, "provider_unavailable", EndReason.CRASHED),
        (400, None, EndReason.CRASHED),
        (403, ["odd"], EndReason.CRASHED),
    ],
)
async def test_a_refusal_ends_the_loop_with_what_was_done(
    turn, upstream: ScriptedUpstream, status: int, code: Any, end: EndReason
) -> None:
    refused = Status(status, body={"error": {"code": code, "message": "no more"}})
    upstream.script = [Says("I look.", calls=[("look", {"at": "a"})]), refused]
    transcript = await turn()
    assert transcript.end is end
    assert f"answered {status}" in transcript.detail
    assert "no more" in transcript.detail
    assert len(transcript.tool_calls) == 1
    assert upstream.count == 2


@pytest.mark.parametrize("late", [Silent(600), Slow(60)])
async def test_time_that_is_up_while_the_model_writes(
    turn, upstream: ScriptedUpstream, clock: LoopClock, late: Any
) -> None:
    upstream.script = [Says("", calls=[("look", {"at": "a"})]), late]
    transcript = await clock.run_out(turn(seconds=LONG), lambda: upstream.count == 2)
    assert transcript.end is EndReason.TIMED_OUT
    assert len(transcript.tool_calls) == 1


@pytest.fixture
def slow(marked: Marked) -> dict[str, Any]:
    """A tool that nobody waits for."""
    command = f"sleep 600; : {marked.word}"
    return {"name": "slow", "description": "Slow.", "command": command, "timeout_seconds": 2 * LONG}


async def test_time_that_is_up_while_a_tool_runs(
    turn, upstream: ScriptedUpstream, clock: LoopClock, marked: Marked, slow: dict[str, Any]
) -> None:
    upstream.says(Says("", calls=[("slow", {})] * 3))
    transcript = await clock.run_out(turn(a_task(tools=[slow]), seconds=LONG), lambda: len(marked.running) >= 3)
    assert transcript.end is EndReason.TIMED_OUT
    await marked.are_gone()


async def test_a_trial_that_is_called_off_ends_its_tools(
    turn, upstream: ScriptedUpstream, marked: Marked, slow: dict[str, Any]
) -> None:
    upstream.says(Says("", calls=[("slow", {})]))
    running = asyncio.create_task(turn(a_task(tools=[slow]), seconds=LONG))
    await until(lambda: marked.running)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await marked.are_gone()


async def test_a_broken_tool_cannot_be_measured(turn, upstream: ScriptedUpstream) -> None:
    gone = {"name": "gone", "description": "Gone.", "function": "gone.py:run"}
    upstream.says(Says("", calls=[("gone", {}), ("look", {"at": "a"})]))
    with pytest.raises(MeasurementError, match="the file of the tool gone"):
        await turn(a_task(tools=[gone, LOOK]))


async def test_a_later_turn_goes_on_with_the_conversation(turn, upstream: ScriptedUpstream) -> None:
    history = (
        Message(role="system", content="You are kind."),
        Message(role="user", content="Look."),
        Message(
            role="assistant",
            content="I look.",
            tool_calls=(
                ToolCall(tool="look", arguments={"at": "a"}, result={"found": 1}),
                ToolCall(tool="delete", refused=True),
            ),
        ),
        Message(role="assistant", content="Here."),
    )
    transcript = await turn(spec=spec_of(system="You are kind."), history=history, turn=1, prompt="And now?")
    messages = upstream.calls[0].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    (asked,) = messages[2]["tool_calls"]
    assert asked["function"] == {"name": "look", "arguments": '{"at": "a"}'}
    assert messages[3] == {"role": "tool", "tool_call_id": asked["id"], "content": '{"found": 1}'}
    assert messages[-1] == {"role": "user", "content": "And now?"}
    assert [message.role for message in transcript.messages] == ["user", "assistant"], "only what is new"
