"""Calls of a real server on the loopback that answers, and fails, as it is told."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.calls import CallProgress, Stage
from passgate.tasks.providers.client import UpstreamError
from passgate.tasks.providers.wire import pieces
from tests.unit.conftest import LONG, LoopClock
from tests.unit.providers.asking import BODY, CHAT, SECONDS, STREAM, closed_port, failure, send, streamed
from tests.unit.providers.conftest import QUICK
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import (
    SOMETHING,
    Down,
    MalformedJson,
    Reply,
    ResetMidBody,
    ResetMidStream,
    Silent,
    Slow,
    Status,
    WrongContentType,
)
from tests.waiting import until

JSON = {"content-type": "application/json"}
HTML = Status(200, {"content-type": "text/html"}, b"<html>")


async def test_a_reply_comes_whole_with_its_document(provider, connect) -> None:
    answer = await send(connect())
    assert answer.status == 200
    assert answer.document == json.loads(answer.body)
    assert answer.document["choices"][0]["message"]["content"] == SOMETHING.text
    assert answer.headers["content-type"] == "application/json"
    (request,) = provider.requests
    assert (request.method, request.path, request.raw) == ("POST", "/v1/chat/completions", BODY)
    assert request.headers["content-type"] == "application/json"


async def test_a_list_is_fetched_with_its_query(provider, connect) -> None:
    answer = await connect().get("models?limit=5&after=a%20b", seconds=SECONDS)
    assert answer.document["data"]
    (request,) = provider.requests
    assert (request.method, request.path) == ("GET", "/v1/models?limit=5&after=a%20b")
    assert "content-length" not in request.headers


async def test_a_configured_key_takes_the_place_of_the_callers(provider, connect) -> None:
    await send(connect(key="sk-real"), Authorization="Bearer placeholder", X_Api_Key="other")
    await send(connect(), Authorization="Bearer mine")
    configured, own = (request.headers for request in provider.requests)
    assert configured["authorization"] == "Bearer sk-real"
    assert "x-api-key" not in configured
    assert own["authorization"] == "Bearer mine"


async def test_headers_of_the_callers_own_connection_stay_behind(provider, connect) -> None:
    own = {"Host": "meter.invalid", "Connection": "keep-alive, X-Hop", "X_Hop": "1", "Content_Length": "999"}
    more = {"Transfer_Encoding": "chunked", "Accept_Encoding": "gzip", "Cookie": "a=b", "User_Agent": "agent/1"}
    await send(connect(), **own, **more, Anthropic_Beta="tools-1")
    headers = provider.requests[0].headers
    assert headers["host"] == f"127.0.0.1:{provider.port}"
    assert headers["content-length"] == str(len(BODY))
    assert headers["accept-encoding"] == "identity"
    assert (headers["anthropic-beta"], headers["user-agent"]) == ("tools-1", "agent/1")
    assert not {"x-hop", "cookie", "connection", "transfer-encoding"} & set(headers)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 422, 501])
async def test_an_error_that_another_attempt_would_not_change_comes_back(status: int, provider, connect) -> None:
    provider.says(Status(status))
    answer = await send(connect())
    assert (answer.status, provider.count) == (status, 1)
    assert answer.document["error"]["message"] == f"Scripted error {status}"


async def test_an_error_that_is_no_json_has_no_document(provider, connect) -> None:
    provider.says(Status(404, body=b"<html>gone</html>"))
    answer = await send(connect())
    assert (answer.status, answer.document, answer.body) == (404, None, b"<html>gone</html>")


PASSING: list[Reply] = [
    *(Down(), ResetMidBody(), MalformedJson(), HTML, Status(200, JSON, b"[1]"), Status(200, JSON, b"[" * 100_000)),
    *(Status(status) for status in (408, 425, 429, 500, 502, 503, 504, 520, 529)),
]


@pytest.mark.parametrize("fault", PASSING, ids=repr)
async def test_what_may_pass_is_tried_again(fault: Reply, provider, connect) -> None:
    provider.says(fault, fault, SOMETHING)
    assert ((await send(connect())).status, provider.count) == (200, 3)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (Down(), "the connection broke"),
        (ResetMidBody(), "the connection broke"),
        (MalformedJson(), "without a JSON object"),
        (HTML, "the content type 'text/html', which is not json"),
        (Status(503), 'answered 503: {"type": "error", "error": {"message": "Scripted error 503"'),
        (Status(429), "answered 429"),
    ],
    ids=repr,
)
async def test_what_does_not_pass_is_given_up_after_five_attempts(fault: Reply, what: str, provider, connect) -> None:
    provider.says(fault)
    error = await failure(connect())
    assert provider.count == 5
    assert isinstance(error, MeasurementError)
    assert error.transient
    assert what in str(error)
    assert f"{provider.openai_base_url}/chat/completions" in str(error)
    assert "(5 attempts)" in str(error)


async def test_a_server_that_cannot_be_reached_is_tried_again_and_given_up(port: int, connect) -> None:
    refused, without_tls = [
        await failure(connect(url)) for url in (f"http://127.0.0.1:{closed_port()}/v1", f"https://127.0.0.1:{port}/v1")
    ]
    assert "it cannot be reached" in str(refused)
    assert "(5 attempts)" in str(refused)
    assert "it cannot be reached" in str(without_tls)
    assert (refused.transient, without_tls.transient) == (True, True)


async def test_a_server_that_is_back_between_two_attempts_is_no_failure(connect) -> None:
    port = closed_port()
    upstream = connect(f"http://127.0.0.1:{port}/v1", retry_policy=replace(QUICK, attempts=100_000))
    call = asyncio.create_task(send(upstream))
    await until(lambda: upstream._breaker._failures)
    assert not call.done()
    with ScriptedUpstream(port=port) as provider:
        assert (await call).status == 200
        assert provider.count == 1


async def test_silence_is_waited_for_only_so_long(provider, connect, clock: LoopClock) -> None:
    provider.says(Silent(LONG), SOMETHING)
    answer = await clock.run_out(send(connect(silence=LONG), seconds=100 * LONG), lambda: provider.count)
    assert answer.status == 200
    provider.says(Status(503), Silent(LONG))
    upstream = connect(silence=LONG, retry_policy=replace(QUICK, attempts=2))
    before = provider.count
    error = await clock.run_out(failure(upstream, seconds=100 * LONG), lambda: provider.count == before + 2)
    assert "silent for 3600 s (2 attempts)" in str(error)
    assert error.transient


async def test_a_slow_reply_is_no_silence(provider, connect, clock: LoopClock, monkeypatch) -> None:
    async def with_pauses(*arguments: Any) -> AsyncIterator[bytes]:
        async for piece in pieces(*arguments):
            clock.forward(2 * LONG)
            yield piece

    monkeypatch.setattr("passgate.tasks.providers.client.pieces", with_pauses)
    provider.says(Slow(0.01))
    assert (await send(connect(silence=LONG), seconds=1000 * LONG)).status == 200
    assert provider.count == 1


async def test_all_attempts_together_have_so_many_seconds(provider, connect, clock: LoopClock) -> None:
    provider.says(Slow(LONG))
    progress, upstream = CallProgress(), connect(silence=100 * LONG)
    call = failure(upstream, seconds=LONG, progress=progress)
    error = await clock.run_out(call, lambda: progress.stage is Stage.REST)
    assert "3600 s were over while waiting for the rest of the answer (1 attempt)" in str(error)
    assert error.transient
    provider.says(Silent(LONG))
    error = await clock.run_out(failure(upstream, seconds=LONG), lambda: provider.count == 2)
    assert "3600 s were over while waiting for an answer (1 attempt)" in str(error)


@pytest.mark.parametrize("status", [429, 503])
async def test_the_pause_that_a_provider_asks_for_is_kept(status: int, provider, connect) -> None:
    provider.says(Status(status, {"retry-after": "500", "retry-after-ms": "300"}), SOMETHING)
    assert (await send(connect())).status == 200
    first, second = provider.requests
    assert second.time - first.time >= 0.3


@pytest.mark.parametrize(("asked", "longest"), [("2.5", 2), ("600", 1000), ("86400", 2)])
async def test_a_pause_that_is_too_long_ends_the_call_at_once(asked: str, longest: float, provider, connect) -> None:
    """Longer than the policy has it, or than the time of the call."""
    provider.says(Status(429, {"retry-after": asked}))
    error = await failure(connect(retry_policy=replace(QUICK, longest_retry_after=longest)))
    assert f"the next attempt is due in {float(asked):.3g} s, which is too long to wait (1 attempt)" in str(error)
    assert error.transient
    assert provider.count == 1


REDIRECTED = "answered 307, and redirections are not followed: check the base URL (1 attempt)"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(Status(307, {"location": "/elsewhere"}), REDIRECTED, id="redirection"),
        pytest.param(Status(200, JSON, b" " * (64 * 2**20 + 1)), "larger than 64 MiB (1 attempt)", id="too large"),
    ],
)
async def test_what_would_be_the_same_again_is_given_up_at_once(reply: Status, why: str, provider, connect) -> None:
    provider.says(reply)
    error = await failure(connect(key="sk-real"))
    assert why in str(error)
    assert not error.transient
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda content: zlib.compress(content, wbits=-zlib.MAX_WBITS)),
    ],
    ids=["gzip", "zlib", "deflate"],
)
@pytest.mark.parametrize("status", [200, 404])
async def test_a_gateway_that_packs_every_answer_can_be_used(
    encoding: str, pack: Callable[[bytes], bytes], status: int, provider, connect
) -> None:
    provider.says(Status(status, {**JSON, "content-encoding": encoding}, pack(b'{"is": "unpacked"}')))
    assert (await send(connect())).document == {"is": "unpacked"}
    events = {"content-type": "text/event-stream", "content-encoding": encoding}
    provider.says(Status(status, events, pack(b"data: {}" * 9)))
    assert await streamed(connect()) == b"data: {}" * 9


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("br", b"\x1f", "the encoding 'br', which was not asked for"),
        ("gzip", b"no", "not packed as it says"),
        ("gzip", gzip.compress(b" " * (64 * 2**20 + 1)), "larger than 64 MiB"),
    ],
    ids=["unknown", "broken", "too large"],
)
async def test_what_cannot_be_unpacked_is_no_answer(encoding: str, body: bytes, why: str, provider, connect) -> None:
    provider.says(Status(200, {**JSON, "content-encoding": encoding}, body))
    assert why in str(await failure(connect()))


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "1"}], ids=str)
async def test_an_account_without_money_is_asked_once(headers: dict[str, str], provider, connect) -> None:
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    provider.says(Status(429, headers, body))
    error = await failure(connect())
    assert (provider.count, error.transient) == (1, False)
    assert "insufficient_quota" in str(error)


async def test_no_message_holds_a_key(provider, connect) -> None:
    key = "sk-real-0123456789"
    provider.script = lambda _, __: Status(
        500, body=b"x" * 395 + provider.requests[-1].headers["authorization"].encode()
    )
    error = await failure(connect(key=key))
    assert "answered 500" in str(error)
    assert not any(key[:length] in str(error) for length in range(6, len(key)))
    with pytest.raises(UpstreamError) as caught:
        await send(connect(), Authorization="Bearer of-the-agent")
    assert "of-the-agent" not in str(caught.value)


async def test_a_refusal_that_repeats_the_key_comes_back_without_it(provider, connect) -> None:
    provider.script = lambda _, __: Status(401, body={"got": provider.requests[-1].headers["authorization"]})
    upstream = connect(key="sk-real-0123456789")
    assert (await send(upstream)).document == {"got": "Bearer ***"}
    assert await streamed(upstream) == b'{"got": "Bearer ***"}'


async def test_control_codes_of_a_provider_do_not_reach_a_message(provider, connect) -> None:
    provider.says(Status(500, body=b"\x1b[2Jall\nis\x07well"))
    says = "answered 500: \N{REPLACEMENT CHARACTER}[2Jall is\N{REPLACEMENT CHARACTER}well"
    assert says in str(await failure(connect()))


async def test_a_stream_comes_in_pieces(provider, connect) -> None:
    provider.says(Slow(0.02))
    async with connect().stream(CHAT, STREAM) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        chunks = [chunk async for chunk in answer.chunks()]
    assert len(chunks) > 5
    assert b"".join(chunks).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("fault", [Down(), Status(500), Status(429), WrongContentType()], ids=repr)
async def test_a_stream_is_tried_again_until_it_begins(fault: Reply, provider, connect) -> None:
    provider.says(fault, fault, SOMETHING)
    assert b"[DONE]" in await streamed(connect())
    assert provider.count == 3
    provider.says(fault)
    with pytest.raises(UpstreamError, match=r"\(5 attempts\)"):
        await streamed(connect())


async def test_json_in_place_of_a_stream_is_no_stream(provider, connect) -> None:
    provider.says(Status(200, body={"choices": []}))
    with pytest.raises(UpstreamError, match="which is not text/event-stream"):
        await streamed(connect())


async def test_a_refusal_in_place_of_a_stream_comes_back(provider, connect) -> None:
    provider.says(Status(401))
    async with connect().stream(CHAT, STREAM) as answer:
        assert answer.status == 401
        assert b"Scripted error 401" in b"".join([chunk async for chunk in answer.chunks()])
    assert provider.count == 1


@pytest.mark.parametrize("fault", [ResetMidStream(3), ResetMidBody()], ids=repr)
async def test_a_stream_that_breaks_gives_what_came_and_is_not_tried_again(fault: Reply, provider, connect) -> None:
    provider.says(fault)
    came = b""
    async with connect().stream(CHAT, STREAM) as answer:
        with pytest.raises(UpstreamError, match=r"the connection broke.*\(1 attempt\)") as caught:  # noqa: PT012
            async for chunk in answer.chunks():
                came += chunk
    assert caught.value.transient
    assert came.startswith(b"data: ")
    assert provider.count == 1


async def test_a_stream_that_falls_silent_breaks(provider, connect, clock: LoopClock) -> None:
    provider.says(Slow(LONG))
    progress = CallProgress()
    with pytest.raises(UpstreamError, match="silent for 3600 s"):
        await clock.run_out(streamed(connect(silence=LONG), progress), lambda: progress.stage is Stage.REST)


async def test_a_stream_that_is_left_early_leaves_nothing_behind(provider, connect) -> None:
    upstream = connect()
    provider.says(Slow(0.02))
    for _ in range(3):
        async with upstream.stream(CHAT, STREAM) as answer:
            async for _ in answer.chunks():
                break
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200
    assert upstream._limiter.in_flight == 0


async def test_what_goes_wrong_in_the_callers_own_code_is_not_the_providers(provider, connect) -> None:
    upstream = connect(retry_policy=replace(QUICK, failures_until_open=1, failing_seconds=0))
    with pytest.raises(ConnectionResetError):
        async with upstream.stream(CHAT, STREAM):
            raise ConnectionResetError("the agent has left")
    assert (await send(upstream)).status == 200
