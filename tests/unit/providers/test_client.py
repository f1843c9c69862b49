"""Calls of a real server on the loopback that answers, and fails, as it is told."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.unit.providers.conftest import QUICK, OpenUpstream
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

from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.client import Answer, Upstream, UpstreamError

CHAT = "chat/completions"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}).encode()
STREAM = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello."}]}).encode()
SECONDS = 20.0


async def send(upstream: Upstream, *, seconds: float = SECONDS, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await upstream.send(CHAT, BODY, named, seconds=seconds)


async def failure(upstream: Upstream, *, seconds: float = SECONDS) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await send(upstream, seconds=seconds)
    return caught.value


async def streamed(upstream: Upstream, *, seconds: float = SECONDS) -> bytes:
    async with upstream.stream(CHAT, STREAM, seconds=seconds) as answer:
        return b"".join([chunk async for chunk in answer.chunks()])


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def test_a_reply_comes_whole_with_its_document(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    answer = await send(connect(provider.openai_base_url))
    assert answer.status == 200
    assert answer.document == json.loads(answer.body)
    assert answer.document["choices"][0]["message"]["content"] == SOMETHING.text
    assert answer.headers["content-type"] == "application/json"
    (request,) = provider.requests
    assert (request.method, request.path, request.raw) == ("POST", "/v1/chat/completions", BODY)
    assert request.headers["content-type"] == "application/json"


async def test_a_list_is_fetched_with_its_query(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    answer = await connect(provider.openai_base_url).get("models?limit=5&after=a%20b", seconds=SECONDS)
    assert answer.document["data"]
    (request,) = provider.requests
    assert (request.method, request.path) == ("GET", "/v1/models?limit=5&after=a%20b")
    assert "content-length" not in request.headers


async def test_the_configured_key_takes_the_place_of_the_callers(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    await send(connect(provider.openai_base_url, key="sk-real"), Authorization="Bearer placeholder", X_Api_Key="other")
    assert provider.requests[0].headers["authorization"] == "Bearer sk-real"
    assert "x-api-key" not in provider.requests[0].headers


async def test_without_a_configured_key_the_callers_goes_out(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    await send(connect(provider.openai_base_url), Authorization="Bearer mine")
    assert provider.requests[0].headers["authorization"] == "Bearer mine"


async def test_headers_that_concern_the_callers_own_connection_stay_behind(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    await send(
        connect(provider.openai_base_url),
        Host="meter.invalid",
        Connection="keep-alive, X-Hop",
        X_Hop="1",
        Content_Length="999",
        Transfer_Encoding="chunked",
        Accept_Encoding="gzip",
        Cookie="a=b",
        Anthropic_Beta="tools-1",
        User_Agent="agent/1",
    )
    headers = provider.requests[0].headers
    assert headers["host"] == f"127.0.0.1:{provider.port}"
    assert headers["content-length"] == str(len(BODY))
    assert headers["accept-encoding"] == "identity"
    assert (headers["anthropic-beta"], headers["user-agent"]) == ("tools-1", "agent/1")
    assert not {"x-hop", "cookie", "connection", "transfer-encoding"} & set(headers)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 422, 501])
async def test_an_error_that_another_attempt_would_not_change_comes_back(
    status: int, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Status(status))
    answer = await send(connect(provider.openai_base_url))
    assert (answer.status, provider.count) == (status, 1)
    assert answer.document["error"]["message"] == f"Scripted error {status}"


async def test_an_error_that_is_no_json_has_no_document(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(404, body=b"<html>gone</html>"))
    answer = await send(connect(provider.openai_base_url))
    assert (answer.status, answer.document, answer.body) == (404, None, b"<html>gone</html>")


PASSING: list[Reply] = [
    Down(),
    ResetMidBody(),
    MalformedJson(),
    WrongContentType(),
    Status(200, {"content-type": "application/json"}, b"[1]"),
    Status(200, {"content-type": "application/json"}, b"[" * 100_000),
    *(Status(status) for status in (408, 425, 429, 500, 502, 503, 504, 520, 529)),
]


@pytest.mark.parametrize("fault", PASSING, ids=repr)
async def test_what_may_pass_is_tried_again(fault: Reply, provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(fault, fault, SOMETHING)
    answer = await send(connect(provider.openai_base_url))
    assert (answer.status, provider.count) == (200, 3)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (Down(), "the connection broke"),
        (ResetMidBody(), "the connection broke"),
        (MalformedJson(), "no JSON object"),
        (WrongContentType(), "the content type 'text/html', which is not json"),
        (Status(503), 'answered 503: {"type": "error", "error": {"message": "Scripted error 503"'),
        (Status(429), "answered 429"),
    ],
    ids=repr,
)
async def test_what_does_not_pass_is_given_up_after_five_attempts(
    fault: Reply, what: str, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(fault)
    error = await failure(connect(provider.openai_base_url))
    assert provider.count == 5
    assert isinstance(error, MeasurementError)
    assert error.transient
    assert what in str(error)
    assert f"{provider.openai_base_url}/chat/completions" in str(error)
    assert "(5 attempts)" in str(error)


async def test_a_refused_connection_is_tried_again_and_given_up(connect: OpenUpstream) -> None:
    error = await failure(connect(f"http://127.0.0.1:{closed_port()}/v1"))
    assert "it cannot be reached" in str(error)
    assert "(5 attempts)" in str(error)
    assert error.transient


async def test_a_server_that_is_back_between_two_attempts_is_no_failure(connect: OpenUpstream) -> None:
    port = closed_port()
    call = asyncio.create_task(send(connect(f"http://127.0.0.1:{port}/v1", patience=replace(QUICK, first_pause=0.2))))
    await asyncio.sleep(0.05)
    assert not call.done()
    with ScriptedUpstream(port=port) as provider:
        assert (await call).status == 200
        assert provider.count == 1


async def test_silence_is_waited_for_only_so_long(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Silent(30), SOMETHING)
    begun = time.monotonic()
    assert (await send(connect(provider.openai_base_url, silence=0.1))).status == 200
    assert time.monotonic() - begun < 5
    provider.says(Silent(30))
    error = await failure(connect(provider.openai_base_url, silence=0.05))
    assert "silent for 0.05 s (5 attempts)" in str(error)
    assert error.transient


async def test_a_slow_reply_is_not_a_silent_one(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Slow(0.05))
    begun = time.monotonic()
    assert (await send(connect(provider.openai_base_url, silence=0.2))).status == 200
    assert time.monotonic() - begun > 0.3
    assert provider.count == 1


async def test_all_attempts_together_have_so_many_seconds(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Slow(0.1))
    begun = time.monotonic()
    error = await failure(connect(provider.openai_base_url), seconds=0.3)
    assert 0.25 < time.monotonic() - begun < 2
    assert "0.3 s were over while it was waited for the rest of the answer (1 attempt)" in str(error)
    assert error.transient
    provider.says(Silent(30))
    error = await failure(connect(provider.openai_base_url), seconds=0.1)
    assert "0.1 s were over while it was waited for an answer (1 attempt)" in str(error)


def in_seconds(count: float) -> dict[str, str]:
    return {"retry-after": str(count)}


def at_a_date(count: float) -> dict[str, str]:
    now = datetime.now(UTC)
    return {"date": format_datetime(now, usegmt=True), "retry-after": format_datetime(now + timedelta(seconds=count))}


def in_milliseconds(count: float) -> dict[str, str]:
    return {"retry-after": "500", "retry-after-ms": str(count * 1000)}


@pytest.mark.parametrize("say", [in_seconds, at_a_date, in_milliseconds])
async def test_the_pause_that_a_provider_asks_for_is_kept(
    say: Callable[[float], dict[str, str]], provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Status(429, say(1)), SOMETHING)
    assert (await send(connect(provider.openai_base_url))).status == 200
    first, second = provider.requests
    assert 1 <= second.time - first.time < 1.9


async def test_a_pause_is_kept_for_a_server_error_too(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(503, {"retry-after": "0.3"}), SOMETHING)
    await send(connect(provider.openai_base_url))
    first, second = provider.requests
    assert second.time - first.time >= 0.3


@pytest.mark.parametrize(("asked", "seconds"), [("2.5", SECONDS), ("1.5", 1.0), ("86400", SECONDS)])
async def test_a_pause_that_is_too_long_ends_the_call_at_once(
    asked: str, seconds: float, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Status(429, {"retry-after": asked}))
    begun = time.monotonic()
    error = await failure(connect(provider.openai_base_url), seconds=seconds)
    assert time.monotonic() - begun < 0.9
    assert f"the next attempt is due in {float(asked):.3g} s, which is too long to wait (1 attempt)" in str(error)
    assert error.transient
    assert provider.count == 1


async def test_a_redirection_is_not_followed(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(307, {"location": f"{provider.url}/elsewhere"}))
    error = await failure(connect(provider.openai_base_url, key="sk-real"))
    assert "answered 307, and redirections are not followed: check the base URL (1 attempt)" in str(error)
    assert not error.transient
    assert len(provider.requests) == 1


async def test_an_answer_may_not_be_larger_than_64_mebibytes(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(200, {"content-type": "application/json"}, b" " * (64 * 2**20 + 1)))
    error = await failure(connect(provider.openai_base_url))
    assert "larger than 64 MiB (1 attempt)" in str(error)
    assert not error.transient


async def test_an_encoding_that_was_not_asked_for_is_not_guessed(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Status(200, {"content-type": "application/json", "content-encoding": "gzip"}, b"\x1f\x8b\x08"))
    assert "the encoding 'gzip', which was not asked for" in str(await failure(connect(provider.openai_base_url)))


async def test_no_message_holds_a_key(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    key = "sk-real-0123456789"
    provider.script = lambda _, __: Status(
        500, body=b"x" * 395 + provider.requests[-1].headers["authorization"].encode()
    )
    error = await failure(connect(provider.openai_base_url, key=key))
    assert "answered 500" in str(error)
    assert not any(key[:length] in str(error) for length in range(6, len(key)))
    with pytest.raises(UpstreamError) as caught:
        await send(connect(provider.openai_base_url), Authorization="Bearer of-the-agent")
    assert "of-the-agent" not in str(caught.value)


async def test_a_refusal_that_repeats_the_key_comes_back_without_it(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.script = lambda _, __: Status(401, body={"got": provider.requests[-1].headers["authorization"]})
    upstream = connect(provider.openai_base_url, key="sk-real-0123456789")
    assert (await send(upstream)).document == {"got": "Bearer ***"}
    assert await streamed(upstream) == b'{"got": "Bearer ***"}'


async def test_control_codes_of_a_provider_do_not_reach_a_message(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Status(500, body=b"\x1b[2Jall\nis\x07well"))
    assert "answered 500: \N{REPLACEMENT CHARACTER}[2Jall is\N{REPLACEMENT CHARACTER}well" in str(
        await failure(connect(provider.openai_base_url))
    )


async def test_a_stream_comes_in_pieces(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Slow(0.02))
    async with connect(provider.openai_base_url).stream(CHAT, STREAM, seconds=SECONDS) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        chunks = [chunk async for chunk in answer.chunks()]
    assert len(chunks) > 5
    assert b"".join(chunks).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("fault", [Down(), Status(500), Status(429), WrongContentType()], ids=repr)
async def test_a_stream_is_tried_again_until_it_begins(
    fault: Reply, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(fault, fault, SOMETHING)
    assert b"[DONE]" in await streamed(connect(provider.openai_base_url))
    assert provider.count == 3
    provider.says(fault)
    with pytest.raises(UpstreamError, match=r"\(5 attempts\)"):
        await streamed(connect(provider.openai_base_url))


async def test_json_in_place_of_a_stream_is_no_stream(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(200, body={"choices": []}))
    with pytest.raises(UpstreamError, match="which is not text/event-stream"):
        await streamed(connect(provider.openai_base_url))


async def test_a_refusal_in_place_of_a_stream_comes_back(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Status(401))
    async with connect(provider.openai_base_url).stream(CHAT, STREAM, seconds=SECONDS) as answer:
        assert answer.status == 401
        assert b"Scripted error 401" in b"".join([chunk async for chunk in answer.chunks()])
    assert provider.count == 1


@pytest.mark.parametrize("fault", [ResetMidStream(3), ResetMidBody()], ids=repr)
async def test_a_stream_that_breaks_gives_what_came_and_is_not_tried_again(
    fault: Reply, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(fault)
    came = b""
    async with connect(provider.openai_base_url).stream(CHAT, STREAM, seconds=SECONDS) as answer:
        with pytest.raises(UpstreamError, match=r"the connection broke.*\(1 attempt\)") as caught:  # noqa: PT012
            async for chunk in answer.chunks():
                came += chunk
    assert caught.value.transient
    assert came.startswith(b"data: ")
    assert provider.count == 1


async def test_a_stream_that_falls_silent_breaks(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Slow(30))
    async with connect(provider.openai_base_url, silence=0.1).stream(CHAT, STREAM, seconds=SECONDS) as answer:
        with pytest.raises(UpstreamError, match=r"silent for 0\.1 s"):
            async for _ in answer.chunks():
                pass


async def test_a_stream_has_so_many_seconds_in_all(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Slow(0.05))
    begun = time.monotonic()
    with pytest.raises(UpstreamError, match=r"0\.3 s were over before its answer was"):
        await streamed(connect(provider.openai_base_url), seconds=0.3)
    assert 0.25 < time.monotonic() - begun < 2


async def test_a_stream_that_is_left_early_leaves_nothing_behind(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    upstream = connect(provider.openai_base_url)
    provider.says(Slow(0.02))
    for _ in range(3):
        async with upstream.stream(CHAT, STREAM, seconds=SECONDS) as answer:
            async for _ in answer.chunks():
                break
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200
    assert upstream._turns.in_flight == 0


async def test_what_goes_wrong_in_the_callers_own_code_is_not_the_providers(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    upstream = connect(provider.openai_base_url, patience=replace(QUICK, failures_until_open=1, failing_seconds=0))
    with pytest.raises(ConnectionResetError):
        async with upstream.stream(CHAT, STREAM, seconds=SECONDS):
            raise ConnectionResetError("the agent has left")
    assert (await send(upstream)).status == 200


async def test_a_cancelled_call_gives_its_turn_back(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Silent(30))
    upstream = connect(provider.openai_base_url)
    calls = [asyncio.create_task(send(upstream)) for _ in range(100)]
    while provider.count < 64:
        await asyncio.sleep(0.01)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert upstream._turns.in_flight == 0
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200


async def test_no_more_than_64_calls_are_under_way_at_first(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Silent(0.3))
    upstream = connect(provider.openai_base_url)
    answers = await asyncio.gather(*(send(upstream) for _ in range(80)))
    assert [answer.status for answer in answers] == [200] * 80
    assert provider.most_at_once == 64


async def test_a_provider_that_takes_four_calls_at_once_is_asked_by_four(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.script = lambda _, __: Status(429) if provider._at_once > 4 else Silent(0.01)
    upstream = connect(provider.openai_base_url, patience=replace(QUICK, attempts=30))
    answers = await asyncio.gather(*(send(upstream) for _ in range(300)))
    assert [answer.status for answer in answers] == [200] * 300
    assert upstream._turns.window.size < 12


async def test_time_in_the_queue_counts(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(Silent(30))
    upstream = connect(provider.openai_base_url)
    blocking = [asyncio.create_task(send(upstream)) for _ in range(64)]
    while provider.count < 64:
        await asyncio.sleep(0.01)
    error = await failure(upstream, seconds=0.2)
    assert "0.2 s were over while it was waited for its turn (0 attempts)" in str(error)
    for call in blocking:
        call.cancel()
    await asyncio.gather(*blocking, return_exceptions=True)


DEAD = replace(QUICK, failing_seconds=0.2, probe_every=0.2)


async def test_a_dead_provider_is_given_up_by_everyone_who_waits(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Down())
    patience = replace(QUICK, first_pause=30, longest_pause=30, failing_seconds=1.5, probe_every=600)
    upstream = connect(provider.openai_base_url, patience=patience)
    waiting = [asyncio.create_task(failure(upstream, seconds=600)) for _ in range(60)]
    while provider.count < 60:
        await asyncio.sleep(0.01)
    await asyncio.sleep(1.8)
    assert not any(call.done() for call in waiting)
    begun = time.monotonic()
    errors = [await failure(upstream), *await asyncio.gather(*waiting), await failure(upstream)]
    assert time.monotonic() - begun < 2
    assert not any(error.transient for error in errors)
    assert "the circuit breaker is open: 61 failures in a row since " in str(errors[-1])
    assert " UTC, the last one: the connection broke" in str(errors[-1])
    assert "(0 attempts)" in str(errors[-1])
    assert provider.count == 61


async def test_a_dead_provider_is_given_up_by_the_queue_too(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    upstream = connect(provider.openai_base_url, silence=0.3, patience=replace(DEAD, first_pause=30, longest_pause=30))
    provider.says(Silent(30))
    begun = time.monotonic()
    errors = await asyncio.gather(*(failure(upstream, seconds=600) for _ in range(200)))
    assert time.monotonic() - begun < 3
    assert provider.count < 80
    assert not any(error.transient for error in errors)


async def test_a_moment_in_which_everything_breaks_is_not_a_dead_provider(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.script = lambda number, _: Down() if number < 50 else SOMETHING
    upstream = connect(provider.openai_base_url, patience=replace(QUICK, failing_seconds=3))
    answers = await asyncio.gather(*(send(upstream) for _ in range(50)))
    assert [answer.status for answer in answers] == [200] * 50


async def dead(provider: ScriptedUpstream, upstream: Upstream, fault: Reply) -> None:
    provider.says(fault)
    deadline = time.monotonic() + 10
    while (await failure(upstream)).transient:
        assert time.monotonic() < deadline


async def test_one_call_at_a_time_finds_out_whether_a_dead_provider_is_back(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    upstream = connect(provider.openai_base_url, patience=DEAD)
    await dead(provider, upstream, Down())
    await asyncio.sleep(DEAD.probe_every + 0.05)
    before = provider.count
    errors = await asyncio.gather(*(failure(upstream) for _ in range(20)))
    assert provider.count == before + 1
    assert not any(error.transient for error in errors)
    provider.says(SOMETHING)
    assert not (await failure(upstream)).transient
    await asyncio.sleep(DEAD.probe_every + 0.05)
    answers = await asyncio.gather(*(send(upstream) for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(answer, Answer) for answer in answers) == 1
    assert (await send(upstream)).status == 200


@pytest.mark.parametrize("fault", [MalformedJson(), WrongContentType(), Status(500), Status(529)], ids=repr)
async def test_a_provider_that_answers_nonsense_is_dead_too(
    fault: Reply, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    await dead(provider, connect(provider.openai_base_url, patience=DEAD), fault)


async def test_a_provider_whose_streams_all_break_is_dead(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    provider.says(ResetMidStream(2))
    upstream = connect(provider.openai_base_url, patience=DEAD)
    for _ in range(DEAD.failures_until_open):
        with pytest.raises(UpstreamError, match="the connection broke"):
            await streamed(upstream)
    with pytest.raises(UpstreamError, match="the circuit breaker is open"):
        await streamed(upstream)


@pytest.mark.parametrize("refusal", [Status(429), Status(401), Status(404)], ids=repr)
async def test_a_provider_that_refuses_is_alive(
    refusal: Reply, provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(refusal)
    patience = replace(QUICK, failing_seconds=0, failures_until_open=2, attempts=2)
    upstream = connect(provider.openai_base_url, patience=patience)
    for _ in range(3):
        with contextlib.suppress(UpstreamError):
            await send(upstream)
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200


async def test_a_provider_that_lets_calls_run_out_of_time_is_dead(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    provider.says(Silent(30))
    upstream = connect(provider.openai_base_url, patience=DEAD)
    errors = [await failure(upstream, seconds=0.1) for _ in range(DEAD.failures_until_open + 1)]
    assert all(error.transient for error in errors[:-1])
    assert "the circuit breaker is open" in str(errors[-1])


@asynccontextmanager
async def one_answer_per_connection() -> AsyncIterator[str]:
    """A server that keeps a connection open, says nothing of closing it, and closes it at the second request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError), contextlib.closing(writer):
            await reader.readuntil(BODY)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
            await reader.readuntil(BODY)
        over.release()

    over = asyncio.Semaphore(0)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()
    for _ in range(4):
        await over.acquire()


async def test_a_kept_connection_that_the_server_has_closed_is_no_failure(connect: OpenUpstream) -> None:
    patience = replace(QUICK, attempts=1, failures_until_open=1, failing_seconds=0)
    async with one_answer_per_connection() as url, connect(url, patience=patience) as upstream:
        for _ in range(4):
            assert (await send(upstream)).document == {}


async def test_connections_are_kept_and_the_last_one_is_taken_first(
    provider: ScriptedUpstream, connect: OpenUpstream
) -> None:
    upstream = connect(provider.openai_base_url)
    provider.says(Silent(0.1))
    await asyncio.gather(*(send(upstream) for _ in range(5)))
    assert len(upstream._wire._idle) == 5
    last = upstream._wire._idle[-1]
    provider.says(SOMETHING)
    for _ in range(3):
        await send(upstream)
    assert len(upstream._wire._idle) == 5
    assert upstream._wire._idle[-1] is last
    await upstream.close()
    assert upstream._wire._idle == []


async def test_a_server_without_tls_cannot_be_reached_by_https(port: int, connect: OpenUpstream) -> None:
    error = await failure(connect(f"https://127.0.0.1:{port}/v1"))
    assert "it cannot be reached" in str(error)
    assert error.transient


async def test_a_proxy_of_the_environment_is_used(
    provider: ScriptedUpstream, connect: OpenUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", provider.url)
    assert (await send(connect("http://models.invalid/v1"))).status == 200
    assert provider.requests[0].path == "http://models.invalid/v1/chat/completions"


async def test_no_proxy_stands_before_this_machine(
    provider: ScriptedUpstream, connect: OpenUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    assert (await send(connect(provider.openai_base_url))).status == 200


async def test_an_upstream_closes_itself_as_a_context(provider: ScriptedUpstream, connect: OpenUpstream) -> None:
    async with connect(provider.openai_base_url) as upstream:
        assert upstream.name == f"127.0.0.1:{provider.port}"
        await send(upstream)
    assert upstream._wire._idle == []
