"""The end of a trial or of a run with calls in flight: nobody is left waiting, and nothing is raised into the void."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator

import httpx
import pytest

from passgate.tasks.metering import relay
from passgate.tasks.providers.calls import Stage
from tests.unit.metering.conftest import Metered
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Reply, Silent, Slow, Status
from tests.upstream_shapes import Says
from tests.waiting import LIMIT, until

LONG = Says(" ".join(["word" * 2500] * 1200))
IN_FLIGHT: dict[str, tuple[Reply, str, bool, Stage]] = {
    "silent": (Silent(300), "chat/completions", False, Stage.ANSWER),
    "silent-stream": (Silent(300), "chat/completions", True, Stage.ANSWER),
    "slow": (Slow(0.5, Says("word " * 4000)), "responses", False, Stage.REST),
    "slow-stream": (Slow(0.5, Says("word " * 4000)), "responses", True, Stage.REST),
    "stream-that-nobody-reads": (LONG, "chat/completions", True, Stage.REST),
    "tried-again": (Status(503, {"retry-after": "60"}), "chat/completions", True, Stage.PAUSE),
    "embeddings": (Silent(300), "embeddings", False, Stage.ANSWER),
}


@pytest.fixture
def complaints(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What asyncio and the server complain of."""
    found: list[str] = []
    caplog.set_level(logging.WARNING)

    def listen() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(str(context)))
        return found

    yield listen
    assert [record.getMessage() for record in caplog.records] == []


async def connected(agent: Metered) -> tuple[asyncio.StreamWriter, str]:
    """A connection of an agent to its meter, and the path of its OpenAI API."""
    url = httpx.URL(agent.trial.base_urls["openai"])
    _, writer = await asyncio.open_connection(url.host, url.port, limit=1024)
    return writer, url.path


async def begin(agent: Metered, upstream: ScriptedUpstream, path: str, stream: bool) -> asyncio.StreamWriter:
    """A request of an agent that has come to the provider and whose answer nobody reads."""
    before = upstream.count
    writer, target = await connected(agent)
    words = '"input": "?"' if path != "chat/completions" else '"messages": [{"role": "user", "content": "?"}]'
    body = f'{{"model": "m", "stream": {str(stream).lower()}, {words}}}'
    writer.write(f"POST {target}/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    await until(lambda: upstream.count > before)
    return writer


@pytest.mark.parametrize("case", IN_FLIGHT)
async def test_a_run_ends_with_calls_in_flight(metered, upstream, complaints, monkeypatch, case: str) -> None:
    outlets: list[relay.Outlet] = []

    class Watched(relay.Outlet):
        def __init__(self, *, is_array: bool) -> None:
            super().__init__(is_array=is_array)
            outlets.append(self)

    monkeypatch.setattr(relay, "Outlet", Watched)
    reply, path, stream, stage = IN_FLIGHT[case]
    upstream.says(reply)
    found = complaints()
    async with metered() as agent:
        writers = [await begin(agent, upstream, path, stream) for _ in range(2)]
        await until(lambda: agent.stages == [stage] * 2)
        if reply is LONG:
            await until(lambda: [outlet._room.locked() for outlet in outlets] == [True] * 2)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert found == []


async def test_agents_that_leave_in_the_middle_of_a_request_are_no_matter(metered, complaints) -> None:
    found = complaints()
    async with metered() as agent:
        writer, target = await connected(agent)
        writer.write(f"POST {target}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{{".encode())
        await until(lambda: agent.trial._answering)
        writer.transport.abort()
        await until(lambda: not agent.trial._answering)
    assert found == []


async def test_a_call_in_flight_is_answered_when_its_trial_ends(metered, upstream) -> None:
    upstream.says(Silent(300))
    async with metered() as agent:
        call = asyncio.create_task(agent.chat())
        await until(lambda: upstream.count)
        agent.trial.close()
        answer = await asyncio.wait_for(call, LIMIT)
    assert (answer.status_code, answer.text) == (503, "the trial is over\n")
