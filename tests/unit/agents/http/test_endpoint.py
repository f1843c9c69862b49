"""One request, done by the agent at most once: a real server, or none."""

import asyncio
import json
import socket
from collections.abc import Iterator

import pytest
from tests.unit.agents.agent_server import YES, AgentServer, Says
from tests.waiting import until

from passgate.tasks.agents.http import AgentEndpoint
from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.retries import RetryPolicy

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
