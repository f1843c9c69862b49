"""One request, done by the agent at most once: a real server, or none."""

import asyncio
import json
import socket
import time

import pytest
from tests.unit.agents.agent_server import YES, AgentServer, Says

from passgate.tasks.agents.http import AgentEndpoint
from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.retries import RetryPolicy


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


HASTE = RetryPolicy(attempts=3, first_pause=0.02, failures_until_open=6, failing_seconds=0.05, probe_every=60)


def endpoint_at(url: str) -> AgentEndpoint:
    return AgentEndpoint("POST", url, silence_seconds=5, retry_policy=HASTE)


async def test_an_agent_that_does_not_listen_yet_is_asked_again(server: AgentServer, free_port: int) -> None:
    endpoint = AgentEndpoint("POST", f"http://127.0.0.1:{free_port}/", silence_seconds=5)
    asking = asyncio.create_task(endpoint.ask(b"{}", {}, seconds=20))
    await asyncio.sleep(0.1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", free_port):
        assert (await asking).content == b"{}"


async def test_an_agent_that_cannot_be_reached(free_port: int) -> None:
    with pytest.raises(MeasurementError, match=f"127.0.0.1:{free_port}/ cannot be reached") as caught:
        await endpoint_at(f"http://127.0.0.1:{free_port}/").ask(b"{}", {}, seconds=20)
    assert caught.value.transient is True


async def test_a_dead_agent_is_given_up_by_all_trials(free_port: int) -> None:
    endpoint = endpoint_at(f"http://127.0.0.1:{free_port}/")
    messages = []
    for _ in range(4):
        with pytest.raises(MeasurementError) as caught:
            await endpoint.ask(b"{}", {}, seconds=20)
        messages.append(str(caught.value))
    assert "cannot be reached" in messages[0]
    assert "the circuit breaker is open: 6 failures in a row" in messages[-1]


@pytest.mark.parametrize("status", [429, 503])
async def test_who_declines_and_says_when_is_asked_again(server: AgentServer, status: int) -> None:
    server.replies = [Says({}, status=status, headers={"Retry-After": "0"}), Says()]
    reply = await endpoint_at(server.url).ask(b"{}", {}, seconds=20)
    assert (reply.status, json.loads(reply.content)) == (200, YES)


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {}), (503, {"Retry-After": "soon"}), (503, {"Retry-After": "3600"}), (500, {"Retry-After": "0"})],
)
async def test_who_declines_otherwise_is_not(server: AgentServer, status: int, headers: dict[str, str]) -> None:
    server.replies = [Says({}, status=status, headers=headers), Says()]
    assert (await endpoint_at(server.url).ask(b"{}", {}, seconds=20)).status == status
    assert len(server.asked) == 1


async def test_who_wants_a_long_pause_is_not_waited_for(server: AgentServer) -> None:
    server.replies = [Says({}, status=429, headers={"Retry-After": "1"}), Says()]
    retry_policy = RetryPolicy(attempts=3, first_pause=0.02, longest_retry_after=0.5)
    endpoint = AgentEndpoint("POST", server.url, silence_seconds=5, retry_policy=retry_policy)
    assert (await endpoint.ask(b"{}", {}, seconds=20)).status == 429


async def test_no_pause_goes_beyond_the_time_of_the_trial(server: AgentServer) -> None:
    server.replies = [Says({}, status=429, headers={"Retry-After": "600"}), Says()]
    started = time.monotonic()
    assert (await endpoint_at(server.url).ask(b"{}", {}, seconds=300)).status == 429
    assert time.monotonic() - started < 60
