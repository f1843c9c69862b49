"""The meter's limits: they hold before a call is paid for, whatever API the agent speaks."""

import re

import pytest

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
    metered, upstream: ScriptedUpstream, api: str, stream: bool, budget: dict[str, float], message: str
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
    limited = "over budget: max_tokens is 60, and passgate limited a reply to (5[789]|60) tokens"
    assert re.fullmatch(limited, transcript.detail)
    assert transcript.steps[0].usage.cost_usd is None, "what the rest would have used is not known"


@every_api
@either_way
async def test_a_forbidden_call_is_taken_out_of_the_reply(
    metered, upstream: ScriptedUpstream, api: str, stream: bool
) -> None:
    upstream.says(Says("Both.", calls=[("drop_table", {"name": "users"}), ("look", {"at": "it"})]))
    async with metered(forbidden=lambda call: call.arguments == {"name": "users"}) as agent:
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
