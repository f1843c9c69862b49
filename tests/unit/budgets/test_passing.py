"""What passes the meter beside model calls."""

import httpx
import pytest
from tests.unit.budgets.conftest import Metered, OpenMeter
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down, Status

from passgate.tasks.errors import MeasurementError


async def embed(agent: Metered, **changes: object) -> httpx.Response:
    body = {"model": "e", "input": "some text", **changes}
    return await agent.client.post(f"{agent.trial.openai_base_url}/embeddings", json=body)


async def test_embeddings_cost_and_are_no_step(metered: OpenMeter, upstream: ScriptedUpstream) -> None:
    async with metered(max_steps=1) as agent:
        assert (await embed(agent)).json()["data"][0]["embedding"] == [0.0, 1.0]
        await agent.chat()
        assert (await embed(agent)).status_code == 200
        transcript = await agent.transcript()
    assert len(transcript.steps) == 1
    assert transcript.usage.tokens_in == 300
    assert transcript.usage.cost_usd == pytest.approx(0.03)


async def test_embeddings_are_held_to_the_budget_of_money(metered: OpenMeter, upstream: ScriptedUpstream) -> None:
    async with metered(max_cost_usd=0.02) as agent:
        answers = [await embed(agent) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert "max_cost_usd is 0.02" in answers[2].json()["error"]["message"]
    assert upstream.count == 2


@pytest.mark.parametrize(("fault", "status"), [(Down(), 503), (Status(401), 401)])
async def test_a_provider_that_gives_no_embeddings_is_no_fault_of_the_agent(
    metered: OpenMeter, upstream: ScriptedUpstream, fault: Down | Status, status: int
) -> None:
    upstream.script = [fault]
    async with metered() as agent:
        assert (await embed(agent)).status_code == status
        with pytest.raises(MeasurementError):
            await agent.transcript()


async def test_embeddings_of_no_model_are_refused(metered: OpenMeter, upstream: ScriptedUpstream) -> None:
    async with metered() as agent:
        url = f"{agent.trial.openai_base_url}/embeddings"
        assert (await agent.client.post(url, json={"input": "x"})).status_code == 400
        assert (await agent.client.post(url, content=b"[]")).status_code == 400
    assert upstream.count == 0


async def test_lists_of_models_pass_and_what_cannot_be_metered_does_not(
    metered: OpenMeter, upstream: ScriptedUpstream
) -> None:
    async with metered() as agent:
        models = await agent.client.get(f"{agent.trial.openai_base_url}/models?limit=3")
        audio = await agent.client.post(f"{agent.trial.openai_base_url}/audio/speech", json={})
    assert models.status_code == 200
    assert upstream.requests[0].path == "/v1/models?limit=3"
    assert audio.status_code == 404
    assert "POST audio/speech" in audio.json()["error"]["message"]
    assert upstream.count == 0
