"""A JSON endpoint as an agent: a real HTTP server that says what a test wants."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.agent_server import AgentServer, Says
from tests.unit.agents.conftest import an_attempt
from tests.waiting import until

from passgate.tasks.agents.http import MAX_REPLY_BYTES, HttpAgent
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import Unmetered
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage


def spec_of(url: str, *, timeout_seconds: float = 240, **http: Any) -> AgentSpec:
    return AgentSpec(kind=AgentKind.HTTP, target=url, timeout_seconds=timeout_seconds, http=http)


ATTEMPT = an_attempt(
    a_task(inputs={"prompt": "Say yes.", "order": {"id": 17, "lines": ["a", "b"]}}), trial=2, session="abc"
)


class Metered(Unmetered):
    openai_base_url = "http://127.0.0.1:1/t/openai/v1"
    anthropic_base_url = "http://127.0.0.1:1/t/anthropic"
    api_key = "trial-key"


async def turn(spec: AgentSpec, attempt: Attempt = ATTEMPT, *, seconds: float = 240) -> Transcript:
    """One turn. An HTTP agent uses neither the sandbox nor anything of the task but its attempt."""
    return await HttpAgent.from_spec(spec, Path()).run(a_task(), attempt, None, Metered(), seconds=seconds)  # type: ignore[arg-type]


async def test_the_request_and_the_answer(server: AgentServer) -> None:
    transcript = await turn(spec_of(server.url))
    assert transcript == Transcript(messages=(Message(role="assistant", content="yes"),), output="yes", complete=False)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/ask")
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.body == {"prompt": "Say yes.", "session": "abc"}


async def test_a_template_keeps_the_types_of_what_it_holds(server: AgentServer) -> None:
    request = {
        "a": ["{{ trial }}", "{{turn}}", "{{ inputs.order }}", "{{ inputs.order.lines.1 }}", 3, None, True],
        "b": {"text": "{{ task_id }}/{{ trial }}: {{ inputs.order.lines }}", "plain": "no {placeholder}"},
        "meter": ["{{ openai_base_url }}", "{{ anthropic_base_url }}", "{{ api_key }}"],
    }
    await turn(spec_of(server.url, request=request, method="PUT"))
    (asked,) = server.asked
    assert asked.method == "PUT"
    assert asked.body == {
        "a": [2, 0, {"id": 17, "lines": ["a", "b"]}, "b", 3, None, True],
        "b": {"text": 'say-yes/2: ["a", "b"]', "plain": "no {placeholder}"},
        "meter": [Metered.openai_base_url, Metered.anthropic_base_url, "trial-key"],
    }


async def test_the_messages_of_a_conversation(server: AgentServer) -> None:
    history = (
        Message(role="user", content="Hello."),
        Message(role="assistant", tool_calls=(ToolCall(tool="look"),)),
        Message(role="assistant", content="Hi."),
    )
    attempt = replace(ATTEMPT, prompt='"Größe"?', history=history, turn=1)
    await turn(spec_of(server.url, request={"messages": "{{ messages }}", "text": "All: {{ messages }}"}), attempt)
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": '"Größe"?'},
    ]
    (asked,) = server.asked
    assert asked.body["messages"] == messages
    assert json.loads(asked.body["text"].removeprefix("All: ")) == messages


GIVEN = a_task(
    inputs={},
    messages=[
        {"role": "user", "content": [{"type": "text", "value": "What is it?"}, {"type": "image", "value": "a.png"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "tool": "look", "result": "seen"}]},
        {"role": "user", "content": "And?"},
    ],
).messages


async def test_the_messages_of_the_task(server: AgentServer, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"image")
    first = replace(ATTEMPT, prompt="all as text", messages=GIVEN, files={"a.png": tmp_path / "a.png"})
    spec = spec_of(server.url, request={"messages": "{{ messages }}", "prompt": "{{ prompt }}"})
    await turn(spec, first)
    told = (Message(role="user", content="all as text"), Message(role="assistant", content="A cat."))
    await turn(spec, replace(first, prompt="Sure?", history=told, turn=1))
    asked, later = (one.body["messages"] for one in server.asked)
    assert server.asked[0].body["prompt"] == "all as text"
    assert [message["role"] for message in asked] == ["user", "assistant", "tool", "user"]
    assert asked[0]["content"][1]["image_url"]["url"] == "data:image/png;base64,aW1hZ2U="
    assert asked[2] == {"role": "tool", "tool_call_id": "a", "content": "seen"}
    assert later[:4] == asked
    assert later[4:] == [{"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}]


async def test_an_image_is_no_trouble_for_an_agent_that_does_not_want_it(server: AgentServer) -> None:
    attempt = replace(ATTEMPT, messages=GIVEN)
    assert (await turn(spec_of(server.url), attempt)).output == "yes"
    with pytest.raises(MeasurementError, match=r"the image a\.png cannot be read"):
        await turn(spec_of(server.url, request="{{ messages }}"), attempt)


async def test_what_a_prompt_holds_is_no_template(server: AgentServer) -> None:
    await turn(spec_of(server.url), replace(ATTEMPT, prompt="{{ api_key }} ${{ HOME }}"))
    assert server.asked[0].body["prompt"] == "{{ api_key }} ${{ HOME }}"


@pytest.mark.parametrize("name", ["promt", "input", "", "prompt }} {{ x", "inputs"])
def test_an_unknown_placeholder_is_refused_where_it_is(name: str) -> None:
    request = {"a": [{"b": f"x {{{{ {name} }}}}"}]}
    if name == "inputs":
        HttpAgent.from_spec(spec_of("http://host/", request=request), Path())
        return
    with pytest.raises(UsageError, match=r"http\.request\.a\.0\.b: unknown placeholder") as caught:
        HttpAgent.from_spec(spec_of("http://host/", request=request), Path())
    assert "Known: prompt, messages, inputs" in str(caught.value)
    assert ("did you mean {{ prompt }}?" in str(caught.value)) is (name == "promt")


async def test_an_input_that_the_task_lacks_cannot_be_measured(server: AgentServer) -> None:
    with pytest.raises(MeasurementError, match=r"\{\{ inputs\.order\.name \}\}, which the task say-yes lacks"):
        await turn(spec_of(server.url, request="{{ inputs.order.name }}"))
    assert server.asked == []


async def test_headers_hold_variables_and_what_differs_by_trial(
    server: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "k-{{ session }}-1")
    monkeypatch.setenv("session", "variable")
    headers = {
        "Authorization": "Bearer ${{ MY_KEY }}",
        "X-Trial": "{{ session }}.{{ trial }}.${{ session }}",
        "Accept": "text/plain",
    }
    agent = HttpAgent.from_spec(spec_of(server.url, headers=headers), Path())
    monkeypatch.delenv("MY_KEY")
    await agent.run(a_task(), ATTEMPT, None, Metered(), seconds=240)  # type: ignore[arg-type]
    (asked,) = server.asked
    assert asked.headers["Authorization"] == "Bearer k-{{ session }}-1"
    assert asked.headers["X-Trial"] == "abc.2.variable"
    assert asked.headers["Accept"] == "text/plain"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X-Key", "${{ NOT_SET_ANYWHERE }}", "X-Key: the environment variable NOT_SET_ANYWHERE is not set"),
        ("X-Key", "{{ prompt }}", "http.headers.X-Key: unknown placeholder {{ prompt }}"),
        ("X-Key", "{{ sesion }}", "did you mean {{ session }}?"),
        ("X Key", "a", "'X Key' cannot be the name of a header"),
        ("", "a", "cannot be the name of a header"),
        ("X-Key", "a\nb", "printable ASCII"),
        ("X-Key", "Größe", "printable ASCII"),
        ("X-Key", "${{ WITH_LINE_END }}", "the value of the environment variable WITH_LINE_END: a header holds"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv("WITH_LINE_END", "secret\n")
    with pytest.raises(UsageError) as caught:
        HttpAgent.from_spec(spec_of("http://host/", headers={name: value}), Path())
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "host/path", "ftp://host/", "http://", "http://host:port/", "//host"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the agent http:"):
        HttpAgent.from_spec(spec_of(url), Path())


def test_completeness_needs_tool_calls() -> None:
    with pytest.raises(UsageError, match=r"http\.tool_calls"):
        HttpAgent.from_spec(spec_of("http://host/", complete=True), Path())


async def test_everything_that_a_reply_can_hold(server: AgentServer) -> None:
    reply = {
        "data": [{"text": "done"}],
        "steps": [
            {"tool": "look", "arguments": {"at": "a"}, "result": ["x"], "duration_ms": 3},
            {"name": "take", "input": '{"n": 1}', "is_error": True},
            {"tool": "wait"},
        ],
        "usage": {"in": 12, "out": 3.0, "cost": 0.25},
    }
    server.replies = [Says(reply)]
    transcript = await turn(
        spec_of(
            server.url,
            output="data.0.text",
            tool_calls="steps",
            tokens_in="usage.in",
            tokens_out="usage.out",
            cost_usd="usage.cost",
            complete=True,
        )
    )
    assert transcript.output == "done"
    assert transcript.complete is True
    assert transcript.usage == Usage(tokens_in=12, tokens_out=3, cost_usd=0.25)
    assert [message.content for message in transcript.messages] == ["", "done"]
    assert transcript.tool_calls == (
        ToolCall(tool="look", arguments={"at": "a"}, result=["x"], duration_ms=3),
        ToolCall(tool="take", arguments={"n": 1}, is_error=True),
        ToolCall(tool="wait"),
    )


async def test_what_a_reply_leaves_out_is_unknown(server: AgentServer) -> None:
    transcript = await turn(spec_of(server.url, tool_calls="steps", tokens_in="usage.in", complete=True))
    assert transcript.usage == Usage()
    assert transcript.tool_calls == ()
    assert transcript.end is EndReason.COMPLETED


@pytest.mark.parametrize(("output", "text"), [("", ""), (3, "3"), ({"a": "ö"}, '{"a": "ö"}'), ([], "[]")])
async def test_an_answer_that_is_no_text_is_its_json(server: AgentServer, output: Any, text: str) -> None:
    server.replies = [Says({"output": output})]
    assert (await turn(spec_of(server.url))).output == text


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "its reply cannot be used: EOF"),
        (b"<html>Sign in</html>", "It said: <html>Sign in</html>"),
        (b"\xff\xfe", "cannot be used"),
        (b'{"output": NaN}', "cannot be used"),
        (b'{"output": "\\ud800"}', "cannot be used"),
        (b"[" * 100_000, "cannot be used"),
        ([], "it has no `output`"),
        ({"answer": "yes"}, "it has no `output`. It said: {"),
        ({"output": None}, "it has no `output`"),
        ({"output": "a", "calls": {}}, "`calls` is no list"),
        ({"output": "a", "calls": ["look"]}, "`calls.0` is no object"),
        ({"output": "a", "calls": [{"tool": "a"}, {"result": 1}]}, "`calls.1` cannot be used: tool"),
        ({"output": "a", "calls": [{"tool": "a", "arguments": [1]}]}, "`calls.0` cannot be used: arguments"),
        ({"output": "a", "calls": [{"tool": "a", "arguments": "{"}]}, "cannot be used"),
        ({"output": "a", "in": "many"}, "`in` cannot be used: tokens_in"),
        ({"output": "a", "in": -1}, "`in` cannot be used: tokens_in"),
    ],
)
async def test_a_reply_of_another_shape_is_the_agents_fault(server: AgentServer, body: Any, detail: str) -> None:
    server.replies = [Says(body)]
    transcript = await turn(spec_of(server.url, tool_calls="calls", tokens_in="in"))
    assert transcript.end is EndReason.CRASHED
    assert transcript.complete is False
    assert detail in transcript.detail
    assert len(transcript.detail) < 1000
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 405, 409, 413, 422])
async def test_a_request_that_the_agent_refuses_is_its_fault(server: AgentServer, status: int) -> None:
    server.replies = [Says({"error": "no"}, status=status)]
    transcript = await turn(spec_of(server.url))
    assert transcript.end is EndReason.CRASHED
    assert f'answered {status}: {{"error": "no"}}' in transcript.detail


@pytest.mark.parametrize(
    ("status", "transient"),
    [
        *((status, False) for status in (301, 401, 402, 403, 404, 407)),
        *((status, True) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
async def test_who_cannot_be_asked_cannot_be_measured(server: AgentServer, status: int, transient: bool) -> None:
    server.replies = [Says({"error": "no"}, status=status)]
    with pytest.raises(MeasurementError, match=f"answered {status}: ") as caught:
        await turn(spec_of(server.url))
    assert caught.value.transient is transient
    assert len(server.asked) == 1, "a request that may have been taken on is not sent again"


async def test_messages_do_not_repeat_what_is_secret(server: AgentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1234")
    server.replies = [Says({"error": "unknown key secret-1234"}, status=401)]
    with pytest.raises(MeasurementError, match=r"unknown key \*\*\*"):
        await turn(spec_of(server.url, headers={"X-Key": "${{ MY_KEY }}"}))


async def test_time_that_is_up(server: AgentServer) -> None:
    server.replies = [Says(pause=600)]
    assert (await turn(spec_of(server.url), seconds=0.2)).end is EndReason.TIMED_OUT


async def test_an_agent_that_is_silent_for_too_long(server: AgentServer) -> None:
    server.replies = [Says(pause=600)]
    transcript = await turn(spec_of(server.url, timeout_seconds=0.2))
    assert transcript.end is EndReason.TIMED_OUT
    assert "silent for 0.2 s" in transcript.detail


async def test_a_reply_that_is_too_large(server: AgentServer) -> None:
    server.replies = [Says(b'"' + b"x" * MAX_REPLY_BYTES + b'"')]
    transcript = await turn(spec_of(server.url))
    assert transcript.end is EndReason.OUTPUT_LIMIT
    assert "16 MiB" in transcript.detail


async def test_a_connection_that_breaks_is_not_the_agents_fault_and_nothing_is_asked_twice(server: AgentServer) -> None:
    server.replies = [Says(cut_off=True), Says()]
    with pytest.raises(MeasurementError, match="broke") as caught:
        await turn(spec_of(server.url))
    assert caught.value.transient is True
    assert len(server.asked) == 1


async def test_a_trial_that_is_called_off_hangs_up(server: AgentServer) -> None:
    server.replies = [Says(pause=600)]
    asking: asyncio.Task[Any] = asyncio.create_task(turn(spec_of(server.url)))
    await until(lambda: server.asked)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
