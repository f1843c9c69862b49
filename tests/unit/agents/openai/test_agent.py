"""passgate's own tool loop: against a scripted provider, directly and through the meter."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down, Silent, Slow, Status
from tests.upstream_shapes import Says

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.openai.agent import OWN_KEYS, OpenAiAgent
from passgate.tasks.budgets.access import ModelAccess, Unmetered
from passgate.tasks.budgets.meter import open_meter
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec, CompletionOptions, Endpoint, Upstreams
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript

LOOK = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    "command": 'echo "seen $PASSGATE_TOOL_ARGUMENTS"',
}
FAIL = {"name": "fail", "description": "Fails.", "command": "echo why >&2; exit 3"}


class Direct(Unmetered):
    """A provider without a meter."""

    api_key = "trial-key"

    def __init__(self, upstream: ScriptedUpstream) -> None:
        super().__init__()
        self.openai_base_url = upstream.openai_base_url


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
                task, attempt, sandbox.for_the_agent, access or Direct(upstream), seconds=seconds
            )
            left_behind.extend(sorted(file.name for file in sandbox.workspace.iterdir()))
            return transcript

    return _turn


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
    assert all(0 < call.duration_ms < 20_000 for call in transcript.tool_calls if call.duration_ms is not None)
    assert all(call.duration_ms is not None for call in transcript.tool_calls)
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
        "timeout_seconds": 10,
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


async def test_an_endpoint_that_hangs_up_cannot_be_measured(turn, upstream: ScriptedUpstream) -> None:
    upstream.says(Down())
    with pytest.raises(MeasurementError, match="the way to the models is broken") as caught:
        await turn()
    assert caught.value.transient is True


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


@pytest.mark.parametrize("late", [Silent(30), Slow(1.0)])
async def test_time_that_is_up_while_the_model_writes(turn, upstream: ScriptedUpstream, late: Any) -> None:
    upstream.script = [Says("", calls=[("look", {"at": "a"})]), late]
    started = time.monotonic()
    transcript = await turn(seconds=1.0)
    assert transcript.end is EndReason.TIMED_OUT
    assert len(transcript.tool_calls) == 1
    assert time.monotonic() - started < 10


async def test_time_that_is_up_while_a_tool_runs(turn, upstream: ScriptedUpstream) -> None:
    slow = {"name": "slow", "description": "Slow.", "command": "sleep 60", "timeout_seconds": 60}
    upstream.says(Says("", calls=[("slow", {})] * 3))
    started = time.monotonic()
    assert (await turn(a_task(tools=[slow]), seconds=1.0)).end is EndReason.TIMED_OUT
    assert time.monotonic() - started < 10


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
    transcript = await turn(spec=spec_of(system="You are kind."), history=history, number=1, prompt="And now?")
    messages = upstream.calls[0].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    (asked,) = messages[2]["tool_calls"]
    assert asked["function"] == {"name": "look", "arguments": '{"at": "a"}'}
    assert messages[3] == {"role": "tool", "tool_call_id": asked["id"], "content": '{"found": 1}'}
    assert messages[-1] == {"role": "user", "content": "And now?"}
    assert [message.role for message in transcript.messages] == ["user", "assistant"], "only what is new"


# --- recordings ------------------------------------------------------------------------------------------------------


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
    second = await turn(task, history=first.messages, number=1, prompt="And b?")
    assert second.end is EndReason.COMPLETED
    assert second.tool_calls[0].result == "recorded b"
    upstream.says(Says("done"))
    assert (await turn(task, history=first.messages, number=1)).end is EndReason.REPLAY_MISMATCH


# --- through the meter -----------------------------------------------------------------------------------------------


@pytest.fixture
def through_the_meter(turn, upstream: ScriptedUpstream):
    async def _through(task: EvalTask, *, forbidden: Sequence[str] = (), **budgets: Any) -> Transcript:
        spec = spec_of().model_copy(update={"upstreams": Upstreams(openai=Endpoint(base_url=upstream.openai_base_url))})
        async with open_meter(spec, PriceTable(), Purse(), environment={}) as meter:
            with meter.trial(Budgets(**budgets), lambda call: call.tool in forbidden, seconds=20) as access:
                return await access.transcript(await turn(task, spec=spec, access=access))

    return _through


async def test_the_meter_and_the_loop_tell_one_story(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.script = [Says("I look.", calls=[("look", {"at": "a"}), ("fail", {})]), Says("done")]
    transcript = await through_the_meter(a_task(tools=[LOOK, FAIL]))
    assert [message.role for message in transcript.messages] == ["user", "assistant", "assistant"]
    assert [call.is_error for call in transcript.tool_calls] == [False, True]
    assert all(call.duration_ms for call in transcript.tool_calls)
    assert transcript.steps[0].usage.tokens_in == 100
    assert transcript.output == "done"


async def test_the_budget_ends_the_loop(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("On and on.", calls=[("look", {"at": "a"})]))
    transcript = await through_the_meter(a_task(tools=[LOOK]), max_steps=3)
    assert transcript.end is EndReason.OVER_BUDGET
    assert upstream.count == 3
    assert len(transcript.steps) == 3


async def test_a_forbidden_tool_is_never_run(
    through_the_meter, upstream: ScriptedUpstream, left_behind: list[str]
) -> None:
    tools = [{"name": name, "description": "Leaves a file.", "command": f"touch {name}"} for name in ("add", "delete")]
    upstream.script = [Says("", calls=[("add", {}), ("delete", {})])]
    transcript = await through_the_meter(a_task(tools=tools), forbidden=["delete"])
    assert transcript.end is EndReason.FORBIDDEN_CALL
    assert [call.refused for call in transcript.tool_calls] == [False, True]
    assert upstream.count == 1
    assert left_behind == ["add"]


async def test_a_dead_provider_cannot_be_measured(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.says(Status(401))
    with pytest.raises(MeasurementError, match="answered 401"):
        await through_the_meter(a_task())


async def test_a_trial_that_is_called_off_ends_its_tools(turn, upstream: ScriptedUpstream) -> None:
    slow = {"name": "slow", "description": "Slow.", "command": "sleep 60", "timeout_seconds": 60}
    upstream.says(Says("", calls=[("slow", {})]))
    running = asyncio.create_task(turn(a_task(tools=[slow])))
    while not upstream.count:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.3)
    running.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - started < 5
