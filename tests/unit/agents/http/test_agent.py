"""A JSON endpoint as an agent, and one request that it does at most once: a real server says what a test wants."""

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.agent_server import YES, AgentServer, Says, running_agent
from tests.unit.agents.conftest import an_attempt
from tests.unit.conftest import LONG, LoopClock, call_off
from tests.waiting import until

from passgate.tasks.agents.http import MAX_REPLY_BYTES, AgentEndpoint, HttpAgent
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.transcripts import LONGEST_DETAIL
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import Unmetered, meter_addresses
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.providers.retries import RetryPolicy


@pytest.fixture
def server() -> Iterator[AgentServer]:
    with running_agent() as agent:
        yield agent


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def spec_of(url: str, *, timeout_seconds: float = 240, **http: Any) -> AgentSpec:
    return AgentSpec(kind=AgentKind.HTTP, target=url, timeout_seconds=timeout_seconds, http=http)


ATTEMPT = an_attempt(
    a_task(inputs={"prompt": "Say yes.", "order": {"id": 17, "lines": ["a", "b"]}}), trial=2, session="abc"
)


class Metered(Unmetered):
    base_urls = meter_addresses("http://127.0.0.1:1/t")
    api_key = "trial-key"


@pytest.fixture
def turn(server: AgentServer):
    """One turn. An HTTP agent uses neither the sandbox nor anything of the task but its attempt."""

    async def _turn(attempt: Attempt = ATTEMPT, *, seconds: float = 240, **options: Any) -> Transcript:
        agent = HttpAgent.from_spec(spec_of(server.url, **options), Path())
        return await agent.run(a_task(), attempt, None, Metered(), seconds=seconds)  # type: ignore[arg-type]

    return _turn


async def test_the_request_and_the_answer(turn, server: AgentServer) -> None:
    """What a prompt holds is no template."""
    transcript = await turn(replace(ATTEMPT, prompt="{{ api_key }} ${{ HOME }}"))
    assert transcript == Transcript(messages=(Message(role="assistant", content="yes"),), output="yes", complete=False)
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.headers["Content-Type"]) == ("POST", "/ask", "application/json")
    assert asked.body == {"prompt": "{{ api_key }} ${{ HOME }}", "session": "abc"}


async def test_a_template_keeps_the_types_of_what_it_holds(turn, server: AgentServer) -> None:
    request = {
        "a": ["{{ trial }}", "{{turn}}", "{{ inputs.order }}", "{{ inputs.order.lines.1 }}", 3, None, True],
        "b": {"text": "{{ task_id }}/{{ trial }}: {{ inputs.order.lines }}", "plain": "no {placeholder}"},
        "meter": ["{{ openai_base_url }}", "{{ anthropic_base_url }}", "{{ api_key }}"],
    }
    await turn(request=request, method="PUT")
    (asked,) = server.asked
    assert asked.method == "PUT"
    assert asked.body == {
        "a": [2, 0, {"id": 17, "lines": ["a", "b"]}, "b", 3, None, True],
        "b": {"text": 'say-yes/2: ["a", "b"]', "plain": "no {placeholder}"},
        "meter": ["http://127.0.0.1:1/t/openai/v1", "http://127.0.0.1:1/t/anthropic", "trial-key"],
    }


async def test_the_messages_of_a_conversation(turn, server: AgentServer) -> None:
    history = (
        Message(role="user", content="Hello."),
        Message(role="assistant", tool_calls=(ToolCall(tool="look"),)),
        Message(role="assistant", content="Hi."),
    )
    attempt = replace(ATTEMPT, prompt='"Größe"?', history=history, turn=1)
    await turn(attempt, request={"messages": "{{ messages }}", "text": "All: {{ messages }}"})
    told = [("user", "Hello."), ("assistant", "Hi."), ("user", '"Größe"?')]
    messages = [{"role": role, "content": content} for role, content in told]
    (asked,) = server.asked
    assert asked.body["messages"] == messages
    assert json.loads(asked.body["text"].removeprefix("All: ")) == messages


BLOCKS = [{"type": "text", "value": "What is it?"}, {"type": "image", "value": "a.png"}]
LOOKED = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "tool": "look", "result": "seen"}]}
ASKED = [{"role": "user", "content": BLOCKS}, LOOKED, {"role": "user", "content": "And?"}]
GIVEN = a_task(inputs={}, messages=ASKED).messages


async def test_the_messages_of_the_task(turn, server: AgentServer, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"image")
    first = replace(ATTEMPT, prompt="all as text", messages=GIVEN, files={"a.png": tmp_path / "a.png"})
    request = {"messages": "{{ messages }}", "prompt": "{{ prompt }}"}
    await turn(first, request=request)
    told = (Message(role="user", content="all as text"), Message(role="assistant", content="A cat."))
    await turn(replace(first, prompt="Sure?", history=told, turn=1), request=request)
    asked, later = (one.body["messages"] for one in server.asked)
    assert server.asked[0].body["prompt"] == "all as text"
    assert [message["role"] for message in asked] == ["user", "assistant", "tool", "user"]
    assert asked[0]["content"][1]["image_url"]["url"] == "data:image/png;base64,aW1hZ2U="
    assert asked[2] == {"role": "tool", "tool_call_id": "a", "content": "seen"}
    assert later[:4] == asked
    assert later[4:] == [{"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}]


async def test_what_a_request_wants_and_the_trial_lacks_cannot_be_measured(turn, server: AgentServer) -> None:
    with pytest.raises(MeasurementError, match=r"\{\{ inputs\.order\.name \}\}, which the task say-yes lacks"):
        await turn(request="{{ inputs.order.name }}")
    attempt = replace(ATTEMPT, messages=GIVEN)
    with pytest.raises(MeasurementError, match=r"the image a\.png cannot be read"):
        await turn(attempt, request="{{ messages }}")
    assert server.asked == []
    assert (await turn(attempt)).output == "yes", "where nobody wants the image"


async def test_headers_hold_variables_and_what_differs_by_trial(server: AgentServer, monkeypatch) -> None:
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
    sent = {"Authorization": "Bearer k-{{ session }}-1", "X-Trial": "abc.2.variable", "Accept": "text/plain"}
    assert asked.headers.items() >= sent.items()


def at_host(**http: Any) -> AgentSpec:
    return spec_of("http://host/", **http)


def placing(name: str) -> AgentSpec:
    return at_host(request={"a": [{"b": f"x {{{{ {name} }}}}"}]})


UNKNOWN = "http.request.a.0.b: unknown placeholder"
KNOWN = "Known: prompt, messages, inputs"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        *(
            (spec_of(url), "the agent http:")
            for url in ("", "host/path", "ftp://host/", "http://", "http://host:port/")
        ),
        (at_host(complete=True), "http.tool_calls"),
        (placing("promt"), f"{UNKNOWN} {{{{ promt }}}}; did you mean {{{{ prompt }}}}? {KNOWN}"),
        (placing(""), f"{UNKNOWN} {{{{  }}}}. {KNOWN}"),
        (placing("prompt }} {{ x"), f"{UNKNOWN} {{{{ x }}}}. {KNOWN}"),
        (at_host(headers={"X-Key": "${{ NOT_SET }}"}), "X-Key: the environment variable NOT_SET is not set"),
        (at_host(headers={"X-Key": "{{ prompt }}"}), "http.headers.X-Key: unknown placeholder {{ prompt }}"),
        (at_host(headers={"X-Key": "{{ sesion }}"}), "did you mean {{ session }}?"),
        (at_host(headers={"X Key": "a"}), "'X Key' cannot be the name of a header"),
        (at_host(headers={"": "a"}), "cannot be the name of a header"),
        (at_host(headers={"X-Key": "a\nb"}), "printable ASCII"),
        (at_host(headers={"X-Key": "Größe"}), "printable ASCII"),
        (at_host(headers={"X-Key": "${{ LINE_END }}"}), "the environment variable LINE_END: a header holds"),
    ],
)
def test_options_that_cannot_be_used_are_refused(monkeypatch, spec: AgentSpec, message: str) -> None:
    monkeypatch.setenv("LINE_END", "secret\n")
    with pytest.raises(UsageError) as caught:
        HttpAgent.from_spec(spec, Path())
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_everything_that_a_reply_can_hold(turn, server: AgentServer) -> None:
    steps = [
        {"tool": "look", "arguments": {"at": "a"}, "result": ["x"], "duration_ms": 3},
        {"name": "take", "input": '{"n": 1}', "is_error": True},
        {"tool": "wait"},
    ]
    server.replies = [Says({"data": [{"text": "done"}], "steps": steps, "usage": {"in": 12, "out": 3.0, "cost": 0.25}})]
    usage = {"tokens_in": "usage.in", "tokens_out": "usage.out", "cost_usd": "usage.cost"}
    transcript = await turn(output="data.0.text", tool_calls="steps", complete=True, **usage)
    assert (transcript.output, transcript.complete) == ("done", True)
    assert transcript.usage == Usage(tokens_in=12, tokens_out=3, cost_usd=0.25)
    assert [message.content for message in transcript.messages] == ["", "done"]
    assert transcript.tool_calls == (
        ToolCall(tool="look", arguments={"at": "a"}, result=["x"], duration_ms=3),
        ToolCall(tool="take", arguments={"n": 1}, is_error=True),
        ToolCall(tool="wait"),
    )


async def test_what_a_reply_leaves_out_is_unknown(turn) -> None:
    transcript = await turn(tool_calls="steps", tokens_in="usage.in", complete=True)
    assert (transcript.usage, transcript.tool_calls, transcript.end) == (Usage(), (), EndReason.COMPLETED)


@pytest.mark.parametrize(("output", "text"), [("", ""), (3, "3"), ({"a": "ö"}, '{"a": "ö"}'), ([], "[]")])
async def test_an_answer_that_is_no_text_is_its_json(turn, server: AgentServer, output: Any, text: str) -> None:
    server.replies = [Says({"output": output})]
    assert (await turn()).output == text


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
        ({"output": "a", "calls": {}}, "`calls` is not a list"),
        ({"output": "a", "calls": ["look"]}, "`calls.0` is not an object"),
        ({"output": "a", "calls": [{"tool": "a"}, {"result": 1}]}, "`calls.1` cannot be used: tool"),
        ({"output": "a", "calls": [{"tool": "a", "arguments": [1]}]}, "`calls.0` cannot be used: arguments"),
        ({"output": "a", "calls": [{"tool": "a", "arguments": "{"}]}, "cannot be used"),
        ({"output": "a", "in": "many"}, "`in` cannot be used: tokens_in"),
        ({"output": "a", "in": -1}, "`in` cannot be used: tokens_in"),
    ],
)
async def test_a_reply_of_another_shape_is_the_agents_fault(turn, server, body: Any, detail: str) -> None:
    server.replies = [Says(body)]
    transcript = await turn(tool_calls="calls", tokens_in="in")
    assert (transcript.end, transcript.complete) == (EndReason.CRASHED, False)
    assert detail in transcript.detail
    assert len(transcript.detail) < LONGEST_DETAIL + 200
    assert len(server.asked) == 1


NO = {"error": "no"}
REFUSED = (400, 405, 409, 413, 422)


@pytest.mark.parametrize(
    ("says", "end", "detail"),
    [
        *((Says(NO, status), EndReason.CRASHED, f'answered {status}: {{"error": "no"}}') for status in REFUSED),
        (Says(b'"' + b"x" * MAX_REPLY_BYTES + b'"'), EndReason.OUTPUT_LIMIT, "16 MiB"),
    ],
    ids=[*map(str, REFUSED), "large"],
)
async def test_what_is_the_agents_fault(turn, server, says: Says, end: EndReason, detail: str) -> None:
    server.replies = [says]
    transcript = await turn()
    assert transcript.end is end
    assert detail in transcript.detail


@pytest.mark.parametrize(
    ("seconds", "silence", "detail"),
    [(LONG, 10 * LONG, "did not answer in time"), (10 * LONG, LONG, "silent for 3600 s")],
)
async def test_an_agent_that_does_not_answer_is_timed_out(
    turn, server, clock: LoopClock, seconds: float, silence: float, detail: str
) -> None:
    server.replies = [Says(pause=600)]
    transcript = await clock.run_out(turn(seconds=seconds, timeout_seconds=silence), lambda: server.asked)
    assert transcript.end is EndReason.TIMED_OUT
    assert detail in transcript.detail


@pytest.mark.parametrize(
    ("says", "what", "transient"),
    [
        *((Says(NO, status), f"answered {status}: ", False) for status in (301, 402, 403, 404, 407)),
        *((Says(NO, status), f"answered {status}: ", True) for status in (408, 425, 429, 500, 502, 503, 504)),
        (Says({"error": "unknown key"}, 401), "answered 401: .*unknown key", False),
        (Says(cut_off=True), "broke", True),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Says) else "",
)
async def test_who_cannot_be_asked_cannot_be_measured(
    turn, server: AgentServer, monkeypatch: pytest.MonkeyPatch, says: Says, what: str, transient: bool
) -> None:
    """The request may have been taken on."""
    monkeypatch.setenv("MY_KEY", "secret-1234")
    server.replies = [says, Says()]
    with pytest.raises(MeasurementError, match=what) as caught:
        await turn(headers={"X-Key": "${{ MY_KEY }}"})
    assert caught.value.transient is transient
    assert len(server.asked) == 1


async def test_a_trial_that_is_called_off_hangs_up(turn, server: AgentServer) -> None:
    server.replies = [Says(pause=600)]
    await call_off(turn(), lambda: server.asked)


HASTE = RetryPolicy(attempts=3, first_pause=0.02, failures_until_open=6, failing_seconds=0.05, probe_every=600)


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A socket that has a port and does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken


def endpoint_at(url: str, retry_policy: RetryPolicy = HASTE) -> AgentEndpoint:
    return AgentEndpoint("POST", url, silence_seconds=240, retry_policy=retry_policy)


def url_of(taken: socket.socket) -> str:
    return f"http://127.0.0.1:{taken.getsockname()[1]}/"


async def test_an_agent_that_does_not_listen_yet_is_asked_again(deaf: socket.socket) -> None:
    endpoint = endpoint_at(url_of(deaf), RetryPolicy(attempts=10_000, first_pause=0.02, failures_until_open=10_000))
    asking = asyncio.create_task(endpoint.ask(b"{}", {}, seconds=240))
    await until(lambda: endpoint._breaker._failures)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, sock=deaf):
        assert (await asking).content == b"{}"


async def test_a_dead_agent_is_given_up_by_all_trials(deaf: socket.socket) -> None:
    endpoint = endpoint_at(url_of(deaf))
    errors = []
    for _ in range(4):
        with pytest.raises(MeasurementError) as caught:
            await endpoint.ask(b"{}", {}, seconds=240)
        errors.append(caught.value)
    assert f"{url_of(deaf)} cannot be reached" in str(errors[0])
    assert "the circuit breaker is open: 6 failures in a row" in str(errors[-1])
    assert all(error.transient for error in errors)


@pytest.mark.parametrize("status", [429, 503])
async def test_who_declines_and_says_when_is_asked_again(server: AgentServer, status: int) -> None:
    server.replies = [Says({}, status=status, headers={"Retry-After": "0"}), Says()]
    reply = await endpoint_at(server.url).ask(b"{}", {}, seconds=240)
    assert (reply.status, json.loads(reply.content)) == (200, YES)


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {}), (503, {"Retry-After": "soon"}), (503, {"Retry-After": "3600"}), (500, {"Retry-After": "0"})],
)
async def test_who_declines_otherwise_is_not(server: AgentServer, status: int, headers: dict[str, str]) -> None:
    server.replies = [Says({}, status=status, headers=headers), Says()]
    assert (await endpoint_at(server.url).ask(b"{}", {}, seconds=240)).status == status
    assert len(server.asked) == 1


@pytest.mark.parametrize(("longest", "seconds"), [(59, 240), (60, 50)])
async def test_who_wants_a_long_pause_is_not_waited_for(server: AgentServer, longest: float, seconds: float) -> None:
    """Longer than the policy has it, or than the time of the trial."""
    server.replies = [Says({}, status=429, headers={"Retry-After": "60"}), Says()]
    endpoint = endpoint_at(server.url, RetryPolicy(attempts=3, longest_retry_after=longest))
    assert (await endpoint.ask(b"{}", {}, seconds=seconds)).status == 429
