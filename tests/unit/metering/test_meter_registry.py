"""What every provider of the registry has in common at the meter."""

import httpx
import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.registry import PROVIDERS
from tests.unit.metering.conftest import Metered
from tests.upstream_replies import CutShort, Reply, ResetMidStream
from tests.upstream_shapes import Says

CHAT = {"messages": [{"role": "user", "content": "Go on."}]}
DEPLOYMENT = "openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"


async def azure(agent: Metered, path: str, **body: object) -> httpx.Response:
    headers = {"api-key": agent.trial.api_key}
    return await agent.client.post(f"{agent.trial.base_urls['azure']}/{path}", json=CHAT | body, headers=headers)


@pytest.fixture
def known(upstream) -> dict[str, str]:
    return {"AZURE_OPENAI_ENDPOINT": upstream.url, "AZURE_OPENAI_API_KEY": "the-real-key"}


async def test_a_request_keeps_its_path_and_its_query(metered, upstream, known: dict[str, str]) -> None:
    async with metered(environment=known, max_tokens=100_000) as agent:
        assert (await azure(agent, DEPLOYMENT)).status_code == 200
        assert (await azure(agent, "openai/v1/chat/completions", model="m")).status_code == 200
        assert (await azure(agent, "openai/responses?api-version=1", input="Go on.", model="m")).status_code == 200
        body = {"model": "m", "max_tokens": 9, **CHAT}
        await agent.client.post(f"{agent.trial.base_urls['anthropic']}/v1/messages?beta=true", json=body)
        steps = (await agent.transcript()).steps
    assert [call.path for call in upstream.calls] == [
        f"/{DEPLOYMENT}",
        "/openai/v1/chat/completions",
        "/openai/responses?api-version=1",
        "/v1/messages?beta=true",
    ]
    assert {call.headers.get("api-key") for call in upstream.calls[:3]} == {"the-real-key"}
    assert len(steps) == 4


@pytest.mark.parametrize(
    ("api", "variable", "sent"),
    [
        ("gemini", "GOOGLE_API_KEY", {"x-goog-api-key": "the-real-key"}),
        ("messages", "ANTHROPIC_AUTH_TOKEN", {"authorization": "Bearer the-real-key"}),
    ],
)
async def test_a_key_that_stands_elsewhere_stays_with_the_meter_too(
    metered, upstream, monkeypatch: pytest.MonkeyPatch, api: str, variable: str, sent: dict[str, str]
) -> None:
    monkeypatch.setenv(variable, "the-real-key")
    async with metered(environment={variable: "the-real-key"}) as agent:
        assert agent.trial.variables[variable] == agent.trial.api_key
        await getattr(agent, api)()
    (call,) = upstream.calls
    assert {name: value for name, value in call.headers.items() if "key" in name or name == "authorization"} == sent


async def test_the_model_that_the_user_names_takes_the_place_of_a_deployment(metered, upstream, known) -> None:
    async with metered(environment=known, model="other-gpt") as agent:
        await azure(agent, DEPLOYMENT)
    (call,) = upstream.calls
    assert call.path == f"/{DEPLOYMENT.replace('my-gpt', 'other-gpt')}"
    assert "model" not in call.body


async def test_a_provider_without_an_address_is_no_fault_of_the_agent(metered) -> None:
    async with metered() as agent:
        assert "AZURE_OPENAI_ENDPOINT" not in agent.trial.variables
        answer = await azure(agent, DEPLOYMENT)
        assert answer.status_code == 404
        with pytest.raises(MeasurementError, match="AZURE_OPENAI_ENDPOINT is not set"):
            await agent.transcript()


async def test_a_stream_of_gemini_is_an_array_without_alt_sse(metered, upstream) -> None:
    upstream.says(Says("Well, well.", calls=[("shred", {})]))
    async with metered(forbidden=lambda call: call.tool == "shred", environment={"GEMINI_API_KEY": "real"}) as agent:
        url = f"{agent.trial.base_urls['gemini']}/v1beta/models/m:streamGenerateContent?key={agent.trial.api_key}"
        asked = {"contents": [{"parts": [{"text": "Go on."}]}]}
        answers = [await agent.client.post(url, json=asked) for _ in range(2)]
    (call,) = upstream.calls
    assert call.path == "/v1beta/models/m:streamGenerateContent?alt=sse"
    assert call.headers["x-goog-api-key"] == "real"
    assert answers[0].headers["content-type"] == "application/json"
    parts = [part for one in answers[0].json() for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(part["text"] for part in parts) == "Well, well."
    assert answers[1].json()["error"]["details"][0]["reason"] == "forbidden_call"


@pytest.mark.parametrize("fault", [CutShort(0), CutShort(1), ResetMidStream(1)])
async def test_an_array_that_breaks_off_ends_with_the_error(metered, upstream, fault: Reply) -> None:
    upstream.says(fault)
    async with metered() as agent:
        url = f"{agent.trial.base_urls['gemini']}/v1beta/models/m:streamGenerateContent"
        answer = await agent.client.post(url, json={"contents": []})
        assert answer.json()[-1]["error"]["status"] == "INTERNAL"
        with pytest.raises(MeasurementError):
            await agent.transcript()


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("azure", "openai/deployments/../chat/completions"),
        ("azure", "openai/deployments/a/b/chat/completions"),
        ("azure", "openai/files"),
        ("openai", "v1/chat/completions/../files"),
        ("anthropic", "v1/messages/batches"),
    ],
)
def test_paths_beside_those_of_the_apis_are_no_model_calls(provider: str, path: str) -> None:
    assert PROVIDERS[provider].find_api(path) is None
    assert not PROVIDERS[provider].is_free("POST", path)
