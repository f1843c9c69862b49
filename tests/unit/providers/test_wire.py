"""Connections: kept, taken again, and through a proxy."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpcore
import pytest

from passgate.tasks.providers.retries import AttemptError
from passgate.tasks.providers.wire import breakdowns
from tests.unit.providers.asking import BODY, closed_port, send
from tests.unit.providers.conftest import QUICK


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


async def test_a_kept_connection_that_the_server_has_closed_is_no_failure(connect) -> None:
    retry_policy = replace(QUICK, attempts=1, failures_until_open=1, failing_seconds=0)
    async with one_answer_per_connection() as url, connect(url, retry_policy=retry_policy) as upstream:
        for _ in range(4):
            assert (await send(upstream)).document == {}


async def test_a_proxy_of_the_environment_is_used_but_not_before_this_machine(
    provider, connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", provider.url)
    assert (await send(connect("http://models.invalid/v1"))).status == 200
    assert provider.requests[0].path == "http://models.invalid/v1/chat/completions"
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    assert (await send(connect())).status == 200


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpcore.ConnectTimeout(), "no connection was made in time"),
        (httpcore.ReadTimeout(), "it was silent for 7 s"),
    ],
)
def test_a_time_out_says_what_did_not_come(error: Exception, said: str) -> None:
    with pytest.raises(AttemptError, match=f"^{said}$") as told, breakdowns(silence=7.0):
        raise error
    assert told.value.silence == 7.0
