"""What passes the meter beside model calls."""

import asyncio
import json

import httpx
import pytest

from passgate.tasks.errors import MeasurementError
from tests.unit.metering.conftest import Metered
from tests.upstream_replies import Down, Status


async def embed(agent: Metered, **changes: object) -> httpx.Response:
    body = {"model": "e", "input": "some text", **changes}
    return await agent.client.post(f"{agent.trial.base_urls['openai']}/embeddings", json=body)


async def test_embeddings_cost_and_are_no_step(metered, upstream) -> None:
    async with metered(max_steps=1) as agent:
        assert (await embed(agent)).json()["data"][0]["embedding"] == [0.0, 1.0]
        await agent.chat()
        assert (await embed(agent)).status_code == 200
        transcript = await agent.transcript()
    assert len(transcript.steps) == 1
    assert transcript.usage.tokens_in == 300
    assert transcript.usage.cost_usd == pytest.approx(0.03)


async def test_embeddings_are_held_to_the_budget_of_money(metered, upstream) -> None:
    async with metered(max_cost_usd=0.02) as agent:
        answers = [await embed(agent) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert "max_cost_usd is 0.02" in answers[2].json()["error"]["message"]
    assert upstream.count == 2


@pytest.mark.parametrize(("fault", "status"), [(Down(), 503), (Status(401), 401)])
async def test_a_provider_that_gives_no_embeddings_is_no_fault_of_the_agent(
    metered, upstream, fault: Down | Status, status: int
) -> None:
    upstream.script = [fault]
    async with metered() as agent:
        assert (await embed(agent)).status_code == status
        with pytest.raises(MeasurementError):
            await agent.transcript()


async def test_embeddings_of_no_model_are_refused(metered, upstream) -> None:
    async with metered() as agent:
        url = f"{agent.trial.base_urls['openai']}/embeddings"
        assert (await agent.client.post(url, json={"input": "x"})).status_code == 400
        assert (await agent.client.post(url, content=b"[]")).status_code == 400
    assert upstream.count == 0


async def raw(agent: Metered, target: str, *headers: str, method: str = "GET") -> int:
    """The status of a request whose path no client library has tidied up; `target` stands behind the trial's token."""
    port, token = agent.trial.base_urls["openai"].removeprefix("http://127.0.0.1:").split("/")[:2]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    lines = [f"{method} /{token}/{target} HTTP/1.1", *(headers or ("Host: x",)), "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


@pytest.mark.parametrize(
    "target",
    [
        *("openai/v1/files", "openai/v1/", "openai/v1/responses/resp_1", "openai/v1/organization/admin_api_keys"),
        *("openai/v1/../../admin", "openai/v1/models/../files", "openai/v1/models/..", "openai/v1/models/./x"),
        *("openai/v1/models/%2e%2e/files", "openai/v1/%2e%2e/admin", "openai/v1/models/%252e%252e/files"),
        *("openai/v1/models/..%2f..%2fadmin", "openai/v1/models%2f..%2ffiles", "openai/v1/models/%2e%2e%5cfiles"),
        *("openai/v1/models\\..\\files", "openai/v1//files", "openai/v1/models//files", "openai/v1/models%0d%0a"),
        *("openai/v1/models;/../files", "openai/v1/models%3f/../files", "openai/v1/models%23x", "openai/v1/models/"),
        *("openai//evil.example/models", "openai/v1/http://evil.example/models", "openai/v1/modelsx"),
        *("anthropic/v1/files", "anthropic/models", "anthropic/v1/models/../files", "anthropic/v1/organizations/x"),
    ],
)
async def test_nothing_but_models_can_be_read_with_the_real_key(metered, upstream, target: str) -> None:
    async with metered(environment={"OPENAI_API_KEY": "sk-real", "ANTHROPIC_API_KEY": "ant-real"}) as agent:
        assert await raw(agent, target) in {400, 404}
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("openai/v1/models", "/v1/models"),
        ("openai/models", "/v1/models"),
        ("openai/v1/models/gpt-5-mini", "/v1/models/gpt-5-mini"),
        ("openai/v1/models/ft:gpt-5:org::id", "/v1/models/ft:gpt-5:org::id"),
        ("openai/v1/models/meta-llama/Llama-3.1-8B", "/v1/models/meta-llama/Llama-3.1-8B"),
        ("anthropic/v1/models?limit=20&after_id=x", "/v1/models?limit=20&after_id=x"),
        ("anthropic/v1/models/claude-sonnet-4-5", "/v1/models/claude-sonnet-4-5"),
    ],
)
async def test_models_are_what_clients_read(metered, upstream, target: str, path: str) -> None:
    async with metered() as agent:
        await raw(agent, target)
    assert [request.path for request in upstream.requests] == [path]


async def test_no_header_leads_a_request_elsewhere(metered, upstream) -> None:
    headers = (
        *("Host: evil.example/openai/v1/files?", "Forwarded: host=evil.example", "X-Forwarded-Host: evil.example"),
        *("X-Original-URL: /admin", "X-HTTP-Method-Override: DELETE", "Connection: X-Trick", "X-Trick: 1", "X-Kept: 1"),
    )
    async with metered() as agent:
        assert await raw(agent, "openai/v1/models", *headers) == 200
    [request] = upstream.requests
    assert request.path == "/v1/models"
    assert request.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert set(request.headers) == {"host", "accept-encoding", "x-kept"}


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "OPTIONS"])
async def test_models_can_only_be_read(metered, upstream, method: str) -> None:
    async with metered() as agent:
        assert await raw(agent, "openai/v1/models/m", method=method) == 404
    assert upstream.requests == []


@pytest.mark.parametrize("target", ["openai/v1/responses", "openai/responses", "anthropic/v1/messages"])
async def test_a_web_socket_is_refused_at_once_so_that_codex_goes_on_without(metered, upstream, target: str) -> None:
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    headers = ("Host: x", "Upgrade: websocket", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13")
    async with metered() as agent:
        assert await raw(agent, target, *headers) == 426
        assert (await agent.chat()).status_code == 200


async def test_a_compaction_is_a_model_call_that_says_nothing_new(metered, upstream) -> None:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}
    call = {"type": "function_call", "call_id": "c", "name": "drop", "arguments": "{}"}
    usage = {"input_tokens": 100, "output_tokens": 20}
    short = {"object": "response.compaction", "output": [said, call, {"type": "compaction"}], "usage": usage}
    upstream.says(Status(200, {"content-type": "application/json"}, json.dumps(short).encode()))
    async with metered(forbidden=lambda call: call.tool == "drop", max_tool_calls=0) as agent:
        url = f"{agent.trial.base_urls['openai']}/responses/compact"
        answer = await agent.client.post(url, json={"model": "m", "input": [said, call]})
        transcript = await agent.transcript()
    assert answer.json() == short
    assert upstream.calls[0].path == "/v1/responses/compact"
    (step,) = transcript.steps
    assert (step.content, step.tool_calls, step.usage.cost_usd) == ("", (), pytest.approx(0.01))


async def test_what_cannot_be_metered_does_not_pass(metered, upstream) -> None:
    async with metered() as agent:
        audio = await agent.client.post(f"{agent.trial.base_urls['openai']}/audio/speech", json={})
    assert audio.status_code == 404
    assert "POST audio/speech" in audio.json()["error"]["message"]
    assert upstream.count == 0
