"""Whether an endpoint is there, asked of real ones."""

import asyncio
import socket

import pytest

from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.probe import Probe, probe
from passgate.tasks.providers.registry import PROVIDERS
from tests.answering import answering
from tests.waiting import LIMIT


async def asked(url: str, key: str = "sk-123456", seconds: float = 240) -> Probe:
    return await probe(PROVIDERS["openai"], ResolvedEndpoint(f"{url}/v1", key, "KEY"), seconds=seconds)


def at(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_an_endpoint_that_answers() -> None:
    with answering(200) as server:
        answer = await asked(server.url)
    assert (answer.status, answer.trouble, answer.asked) == (200, "", f"{server.url}/v1/models")
    ((path, headers),) = server.asked
    assert path == "/v1/models"
    assert headers["authorization"] == "Bearer sk-123456"


async def test_anthropics_list_is_asked_for_as_anthropic_wants_it() -> None:
    with answering(200) as server:
        answer = await probe(
            PROVIDERS["anthropic"], ResolvedEndpoint(server.url, "sk-123456", "KEY", "x-api-key"), seconds=240
        )
    assert answer.status == 200
    ((path, headers),) = server.asked
    assert path == "/v1/models"
    assert headers["x-api-key"] == "sk-123456"
    assert headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_an_endpoint_that_does_not_let_us_in(status: int) -> None:
    with answering(status) as server:
        assert (await asked(server.url)).status == status


@pytest.mark.parametrize(
    ("status", "body", "content_type"),
    [(500, b'{"error": "bad key sk-123456"}', "application/json"), (200, b"<html>", "text/html"), (302, b"", "")],
)
async def test_an_endpoint_that_is_of_no_use_is_asked_once_and_its_key_not_told(
    status: int, body: bytes, content_type: str
) -> None:
    with answering(status, body, content_type) as server:
        answer = await asked(server.url)
    assert (answer.status, len(server.asked)) == (None, 1)
    assert answer.asked in answer.trouble
    assert "sk-123456" not in repr(answer)


async def test_nobody_there_and_silence_are_not_waited_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = await asked(at(taken))
    assert answer.status is None
    assert "cannot be reached" in answer.trouble
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert (await asyncio.wait_for(asked(at(silent), seconds=0.1), LIMIT)).status is None
