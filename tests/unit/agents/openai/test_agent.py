"""passgate's own tool loop against a scripted provider: what it asks and runs, and what ends it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import an_attempt
from tests.unit.agents.openai.conftest import LOOK, spec_of
from tests.unit.conftest import LONG, LoopClock, Marked, call_off
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Silent, Slow, Status
from tests.upstream_shapes import Says

from passgate.tasks.agents.openai import OWN_KEYS, OpenAiAgent, Opening, make_opening
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, ToolCall

LOOKS = Says("I look.", calls=[("look", {"at": "a"})])


async def test_an_answer_without_tools(turn, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("yes"))
    transcript = await turn(a_task())
    assert (transcript.output, transcript.complete, transcript.end) == ("yes", True, EndReason.COMPLETED)
    assert said(transcript.messages) == [("user", "Say yes."), ("assistant", "yes")]
    (call,) = upstream.calls
    assert (call.path, call.headers["authorization"]) == ("/v1/chat/completions", "Bearer trial-key")
    assert call.body == {"model": "model-1", "messages": [{"role": "user", "content": "Say yes."}]}


async def test_tools_are_run_and_their_results_told(turn, upstream: ScriptedUpstream) -> None:
    looks = [Says("I look.", calls=[("look", {"at": "a"}), ("fail", {})]), Says("", calls=[("look", {"at": "b"})])]
    upstream.script = [*looks, Says("done")]
    transcript = await turn()
    assert [step.content for step in transcript.steps] == ["I look.", "", "done"]
    assert transcript.output == "done"
    assert [(call.tool, call.arguments, call.result, call.is_error) for call in transcript.tool_calls] == [
        ("look", {"at": "a"}, 'seen {"at": "a"}\n', False),
        ("fail", {}, "exit code 3. why", True),
        ("look", {"at": "b"}, 'seen {"at": "b"}\n', False),
    ]

    requests = [call.body for call in upstream.calls]
    fails = {"name": "fail", "description": "Fails.", "parameters": {"type": "object", "properties": {}}}
    assert requests[0]["tools"] == [
        {"type": "function", "function": {key: LOOK[key] for key in ("name", "description", "parameters")}},
        {"type": "function", "function": fails},
    ]
    user, said, seen, failed = requests[1]["messages"]
    assert (user["role"], said["role"], said["content"]) == ("user", "assistant", "I look.")
    assert [call["id"] for call in said["tool_calls"]] == ["call_0_0", "call_0_1"]
    assert seen == {"role": "tool", "tool_call_id": "call_0_0", "content": 'seen {"at": "a"}\n'}
    assert failed == {"role": "tool", "tool_call_id": "call_0_1", "content": "exit code 3. why"}
    assert requests[2]["messages"][:4] == requests[1]["messages"]
    assert requests[2]["messages"][4]["content"] is None


async def test_calls_of_one_reply_run_side_by_side_and_keep_their_order(turn, upstream: ScriptedUpstream) -> None:
    meet = "touch $$.$(date +%N).here; while [ $(ls *.here | wc -l) -lt 3 ]; do sleep 0.02; done; cat"
    meets = {"name": "meet", "description": "Meets the others.", "command": meet, "timeout_seconds": 240}
    upstream.script = [Says("", calls=[("meet", {"n": number}) for number in range(3)]), Says("done")]
    transcript = await turn(a_task(tools=[meets]))
    told = [json.loads(message["content"]) for message in upstream.calls[1].body["messages"][2:]]
    assert [call.result for call in transcript.tool_calls] == told == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_the_systems_message_parameters_and_the_schema_of_the_answer(turn, upstream: ScriptedUpstream) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    task = a_task(inputs={"prompt": "Answer.", "system": "The desk is open.", "output_schema": schema})
    spec = spec_of(system="You are kind.", parameters={"temperature": 0.5, "seed": 7})
    assert (await turn(task, spec=spec)).messages[0].role == "system"
    (call,) = upstream.calls
    assert call.body["messages"][0] == {"role": "system", "content": "You are kind.\n\nThe desk is open."}
    assert (call.body["temperature"], call.body["seed"]) == (0.5, 7)
    assert call.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (AgentSpec(kind=AgentKind.OPENAI), "openai:MODEL"),
        *(
            (spec_of(parameters={key: 1}), f"completion.parameters.{key}: passgate sets this itself")
            for key in OWN_KEYS
        ),
    ],
)
def test_a_parameter_that_passgate_sets_and_no_model_are_refused(suites: Path, spec: AgentSpec, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        OpenAiAgent.from_spec(spec, suites)


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
    assert (call.arguments, call.is_error) == ({"unparsed": arguments}, True)
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


NO_REPLIES = [b"<html>", b"[]", b"{}", *({"choices": choices} for choices in ([], [{"message": 3}]))]


@pytest.mark.parametrize("body", [*NO_REPLIES, {"choices": [{"message": {"content": 3}}]}])
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
async def test_a_refusal_ends_the_loop_with_what_was_done(turn, upstream, status: int, code: Any, end) -> None:
    refused = Status(status, body={"error": {"code": code, "message": "no more"}})
    upstream.script = [LOOKS, refused]
    transcript = await turn()
    assert (transcript.end, len(transcript.tool_calls), upstream.count) == (end, 1, 2)
    assert f"answered {status}" in transcript.detail
    assert "no more" in transcript.detail


@pytest.mark.parametrize("late", [Silent(600), Slow(60)])
async def test_time_that_is_up_while_the_model_writes(turn, upstream, clock: LoopClock, late: Any) -> None:
    upstream.script = [LOOKS, late]
    transcript = await clock.run_out(turn(seconds=LONG), lambda: upstream.count == 2)
    assert (transcript.end, len(transcript.tool_calls)) == (EndReason.TIMED_OUT, 1)


@pytest.fixture
def slow(marked: Marked, upstream: ScriptedUpstream) -> EvalTask:
    """A task whose model calls a tool three times that nobody waits for."""
    upstream.says(Says("", calls=[("slow", {})] * 3))
    command = f"sleep 600; : {marked.word}"
    tool = {"name": "slow", "description": "Slow.", "command": command, "timeout_seconds": 2 * LONG}
    return a_task(tools=[tool])


async def test_time_that_is_up_while_a_tool_runs(turn, clock: LoopClock, marked: Marked, slow: EvalTask) -> None:
    transcript = await clock.run_out(turn(slow, seconds=LONG), lambda: len(marked.running) >= 3)
    assert transcript.end is EndReason.TIMED_OUT
    await marked.are_gone()


async def test_a_trial_that_is_called_off_ends_its_tools(turn, marked: Marked, slow: EvalTask) -> None:
    await call_off(turn(slow, seconds=LONG), lambda: marked.running)
    await marked.are_gone()


async def test_a_later_turn_goes_on_with_the_conversation(turn, upstream: ScriptedUpstream) -> None:
    calls = (ToolCall(tool="look", arguments={"at": "a"}, result={"found": 1}), ToolCall(tool="delete", refused=True))
    history = (
        Message(role="system", content="You are kind."),
        Message(role="user", content="Look."),
        Message(role="assistant", content="I look.", tool_calls=calls),
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


GIVEN = [
    {"role": "system", "content": "The desk is open."},
    {"role": "system", "content": "It is Monday."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "tool": "look", "result": "seen"}]},
    {"role": "assistant", "content": "Hi."},
    {"role": "system", "content": "Now be brief."},
    {"role": "user", "content": [{"type": "text", "value": "Say yes."}]},
]


def opening(
    messages: list[dict[str, Any]], *, system: str | None = None, history: tuple[Message, ...] = (), inputs: Any = ()
) -> Opening:
    task = a_task(inputs=dict(inputs), messages=messages)
    prompt = "And now?" if history else task.prompt
    return make_opening(system, an_attempt(task, prompt=prompt, history=history, messages=task.messages))


def said(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


@pytest.mark.parametrize(
    ("system", "inputs", "joined"),
    [
        (None, {}, "The desk is open.\n\nIt is Monday."),
        ("Be kind.", {"system": "It rains."}, "Be kind.\n\nIt rains.\n\nThe desk is open.\n\nIt is Monday."),
    ],
)
def test_the_task_asks_in_messages(system: str | None, inputs: dict[str, str], joined: str) -> None:
    begun = opening(GIVEN, system=system, inputs=inputs)
    roles = [message["role"] for message in begun.context]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "system", "user"]
    assert begun.context[0]["content"] == joined
    assert begun.context[2]["tool_calls"][0]["id"] == begun.context[3]["tool_call_id"] == "a"
    assert begun.context[-1]["content"] == [{"type": "text", "text": "Say yes."}]


def test_what_an_assistant_said_before_is_no_step() -> None:
    assert said(opening(GIVEN).said) == [
        ("system", "The desk is open.\n\nIt is Monday."),
        ("user", "Hello."),
        ("system", "Now be brief."),
        ("user", "Say yes."),
    ]


def test_later_turns_go_on_after_the_messages() -> None:
    answers = (Message(role="assistant", content="yes"), Message(role="user", content="Sure?"))
    history = (*opening(GIVEN).said, *answers, Message(role="assistant", content="sure"))
    later = opening(GIVEN, system="Be kind.", history=history)
    assert said(later.said) == [("user", "And now?")]
    assert later.context[:-4] == opening(GIVEN, system="Be kind.").context
    assert [message["content"] for message in later.context[-4:]] == ["yes", "Sure?", "sure", "And now?"]


def test_without_a_system_message_there_is_none() -> None:
    begun = opening([{"role": "user", "content": "Hello."}])
    assert (begun.context, said(begun.said)) == (({"role": "user", "content": "Hello."},), [("user", "Hello.")])
