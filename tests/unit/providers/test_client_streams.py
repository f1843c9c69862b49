"""Streamed replies of a real server, and how they break."""

from dataclasses import replace

import pytest

from passgate.tasks.providers.client import UpstreamError
from tests.unit.providers.asking import CHAT, STREAM, send, streamed
from tests.unit.providers.conftest import QUICK
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import SOMETHING, Down, Reply, ResetMidBody, ResetMidStream, Slow, Status, WrongContentType


async def test_a_stream_comes_in_pieces(provider: ScriptedUpstream, connect) -> None:
    provider.says(Slow(0.02))
    async with connect().stream(CHAT, STREAM) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        chunks = [chunk async for chunk in answer.chunks()]
    assert len(chunks) > 5
    assert b"".join(chunks).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("fault", [Down(), Status(500), Status(429), WrongContentType()], ids=repr)
async def test_a_stream_is_tried_again_until_it_begins(fault: Reply, provider: ScriptedUpstream, connect) -> None:
    provider.says(fault, fault, SOMETHING)
    assert b"[DONE]" in await streamed(connect())
    assert provider.count == 3
    provider.says(fault)
    with pytest.raises(UpstreamError, match=r"\(5 attempts\)"):
        await streamed(connect())


async def test_json_in_place_of_a_stream_is_no_stream(provider: ScriptedUpstream, connect) -> None:
    provider.says(Status(200, body={"choices": []}))
    with pytest.raises(UpstreamError, match="which is not text/event-stream"):
        await streamed(connect())


async def test_a_refusal_in_place_of_a_stream_comes_back(provider: ScriptedUpstream, connect) -> None:
    provider.says(Status(401))
    async with connect().stream(CHAT, STREAM) as answer:
        assert answer.status == 401
        assert b"Scripted error 401" in b"".join([chunk async for chunk in answer.chunks()])
    assert provider.count == 1


@pytest.mark.parametrize("fault", [ResetMidStream(3), ResetMidBody()], ids=repr)
async def test_a_stream_that_breaks_gives_what_came_and_is_not_tried_again(
    fault: Reply, provider: ScriptedUpstream, connect
) -> None:
    provider.says(fault)
    came = b""
    async with connect().stream(CHAT, STREAM) as answer:
        with pytest.raises(UpstreamError, match=r"the connection broke.*\(1 attempt\)") as caught:  # noqa: PT012
            async for chunk in answer.chunks():
                came += chunk
    assert caught.value.transient
    assert came.startswith(b"data: ")
    assert provider.count == 1


async def test_a_stream_that_falls_silent_breaks(provider: ScriptedUpstream, connect) -> None:
    provider.says(Slow(30))
    async with connect(silence=0.1).stream(CHAT, STREAM) as answer:
        with pytest.raises(UpstreamError, match=r"silent for 0\.1 s"):
            async for _ in answer.chunks():
                pass


async def test_a_stream_that_is_left_early_leaves_nothing_behind(provider: ScriptedUpstream, connect) -> None:
    upstream = connect()
    provider.says(Slow(0.02))
    for _ in range(3):
        async with upstream.stream(CHAT, STREAM) as answer:
            async for _ in answer.chunks():
                break
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200
    assert upstream._limiter.in_flight == 0


async def test_what_goes_wrong_in_the_callers_own_code_is_not_the_providers(
    provider: ScriptedUpstream, connect
) -> None:
    upstream = connect(retry_policy=replace(QUICK, failures_until_open=1, failing_seconds=0))
    with pytest.raises(ConnectionResetError):
        async with upstream.stream(CHAT, STREAM):
            raise ConnectionResetError("the agent has left")
    assert (await send(upstream)).status == 200
