"""The meter's limits: they hold before a call is paid for, whatever API the agent speaks."""

import asyncio
import re

import pytest

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.transcript import EndReason
from tests.unit.metering.conftest import either_way, every_api, message_of
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Slow
from tests.upstream_shapes import Says


@every_api
@either_way
@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"max_steps": 4}, "over budget: max_steps is 4 and the agent wanted one more model call"),
        ({"max_cost_usd": 0.04}, "over budget: max_cost_usd is 0.04 and the trial used $0.04"),
        ({"max_tokens": 480}, "over budget: max_tokens is 480, the trial used 480 and the next call needs 101"),
    ],
)
async def test_the_call_beyond_a_budget_never_reaches_the_provider(
    metered,
    upstream: ScriptedUpstream,
    api: str,
    stream: bool,
    budget: dict[str, float],
    message: str,
) -> None:
    async with metered(**budget) as agent:
        answers = [await getattr(agent, api)(stream) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 400]
        assert message_of(answers[4]) == message
        transcript = await agent.transcript()
    assert upstream.count == 4
    assert (transcript.end, transcript.detail) == (EndReason.OVER_BUDGET, message)
    assert len(transcript.steps) == 4
    assert transcript.whole_usage.cost_usd == pytest.approx(0.04)


@every_api
@either_way
async def test_the_tool_call_beyond_max_tool_calls_never_reaches_the_agent(
    metered, upstream: ScriptedUpstream, api: str, stream: bool
) -> None:
    upstream.says(Says("Well.", calls=[("look", {"at": "it"})]))
    async with metered(max_tool_calls=4) as agent:
        answers = [await getattr(agent, api)(stream) for _ in range(6)]
        transcript = await agent.transcript()
    assert [b"look" in answer.content for answer in answers] == [True] * 4 + [False] * 2
    assert [answer.status_code for answer in answers] == [200] * 5 + [400]
    assert upstream.count == 5
    assert transcript.detail == "over budget: max_tool_calls is 4 and the agent wanted one more"
    assert [call.refused for call in transcript.tool_calls] == [False] * 4 + [True]


async def test_no_more_tokens_are_asked_for_than_are_left(metered, upstream: ScriptedUpstream) -> None:
    async with metered(max_tokens=1000) as agent:
        await agent.messages(max_tokens=4000)
        await agent.chat(max_completion_tokens=4000)
        await agent.responses(max_output_tokens=5)
        await agent.chat()
    first, second, third, fourth = (call.body for call in upstream.calls)
    assert 990 <= first["max_tokens"] < 1000, "the request has tokens too"
    assert second["max_completion_tokens"] <= 880
    assert third["max_output_tokens"] == 5
    assert not {"max_tokens", "max_completion_tokens"} & fourth.keys()


@every_api
async def test_a_stream_is_cut_where_the_tokens_end(metered, upstream: ScriptedUpstream, api: str) -> None:
    upstream.script = [Slow(0.001, Says("word " * 2000, tokens_out=2000))]
    async with metered(max_tokens=60) as agent:
        answer = await getattr(agent, api)(True)
        transcript = await agent.transcript()
    assert 72 <= answer.text.count("word") < 1900
    assert re.fullmatch(
        "over budget: max_tokens is 60, and passgate limited a reply to (5[789]|60) tokens", transcript.detail
    )
    assert transcript.steps[0].usage.cost_usd is None, "what the rest would have used is not known"


async def test_calls_side_by_side_are_held_too(metered, upstream: ScriptedUpstream) -> None:
    async with metered(max_steps=4) as agent:
        answers = await asyncio.gather(*(agent.chat() for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [400] * 8
    assert upstream.count == 4


async def test_whoever_waits_for_the_end_is_told(metered) -> None:
    async with metered(max_steps=1) as agent:
        over = asyncio.ensure_future(agent.trial.over())
        await agent.chat()
        assert not over.done()
        await agent.chat()
        await asyncio.wait_for(over, 1)


async def test_an_unknown_price_is_an_error_and_not_free(metered, upstream: ScriptedUpstream) -> None:
    async with metered(prices=PriceTable(), max_cost_usd=1.0) as agent:
        answer = await agent.chat(model="new-model")
        assert answer.status_code == 400
        with pytest.raises(MeasurementError, match=r"'new-model' is unknown and the task has .* prices\.yaml"):
            await agent.transcript()
    assert upstream.count == 0


async def test_without_any_limit_on_money_an_unknown_price_is_only_unknown(metered) -> None:
    async with metered(prices=PriceTable()) as agent:
        await agent.chat()
        transcript = await agent.transcript()
    assert transcript.steps[0].usage.cost_usd is None
    assert transcript.steps[0].usage.tokens_in == 100


async def test_the_cap_of_the_run_stops_every_trial_and_is_nobodys_fault(metered, upstream: ScriptedUpstream) -> None:
    cost_cap = CostCap(0.03)
    async with metered(cost_cap=cost_cap) as agent:
        answers = [await agent.chat() for _ in range(4)]
        with pytest.raises(CostCapError, match=r"cost cap of \$0\.03"):
            await agent.transcript()
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400]
    assert upstream.count == 3
    assert cost_cap.exhausted


@every_api
@either_way
async def test_a_forbidden_call_is_taken_out_of_the_reply(
    metered, upstream: ScriptedUpstream, api: str, stream: bool
) -> None:
    upstream.says(Says("Both.", calls=[("drop_table", {"name": "users"}), ("look", {"at": "it"})]))
    async with metered(forbidden=lambda call: call.tool == "drop_table") as agent:
        answer = await getattr(agent, api)(stream)
        after = await getattr(agent, api)(stream)
        transcript = await agent.transcript()
    assert b"drop_table" not in answer.content
    assert b"look" in answer.content
    assert after.status_code == 400
    assert upstream.count == 1
    assert transcript.end is EndReason.FORBIDDEN_CALL
    refused = transcript.tool_calls[0]
    assert (refused.tool, refused.arguments, refused.refused) == ("drop_table", {"name": "users"}, True)


async def test_arguments_decide_too(metered, upstream: ScriptedUpstream) -> None:
    upstream.says(Says(calls=[("send", {"to": "a"})]), Says(calls=[("send", {"to": "evil"})]))
    async with metered(forbidden=lambda call: call.arguments == {"to": "evil"}) as agent:
        assert b"send" in (await agent.chat()).content
        assert b"send" not in (await agent.chat()).content
