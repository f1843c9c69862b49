"""The meter's limits: they hold before a call is paid for, whatever API the agent speaks and however many at once."""

import asyncio
import re
from typing import Any

import pytest

from passgate.tasks.errors import CostCapError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.transcript import EndReason, Transcript
from tests.unit.metering.conftest import Metered, either_way, every_api, message_of
from tests.upstream_replies import Silent, Slow, Status
from tests.upstream_shapes import Says
from tests.waiting import until


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
    metered, upstream, api: str, stream: bool, budget: dict[str, float], message: str
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
    metered, upstream, api: str, stream: bool
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


async def test_no_more_tokens_are_asked_for_than_are_left(metered, upstream) -> None:
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
async def test_a_stream_is_cut_where_the_tokens_end(metered, upstream, api: str) -> None:
    upstream.script = [Slow(0.001, Says("word " * 2000, tokens_out=2000))]
    async with metered(max_tokens=60) as agent:
        answer = await getattr(agent, api)(True)
        transcript = await agent.transcript()
    limited = "over budget: max_tokens is 60, and passgate limited a reply to (5[6789]|60) tokens"
    found = re.fullmatch(limited, transcript.detail)
    assert found
    assert int(found[1]) * 6 // 5 <= answer.text.count("word") < 1900
    assert transcript.steps[0].usage.cost_usd is None, "what the rest would have used is not known"


@every_api
@either_way
async def test_a_forbidden_call_is_taken_out_of_the_reply(metered, upstream, api: str, stream: bool) -> None:
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


SHORT = Silent(0.05, Says("Well.", tokens_in=100, tokens_out=20))
"""A reply that calls at the same time wait for together."""


async def at_once(agent: Metered, calls: int, api: str = "chat", **body: Any) -> list[int]:
    """The statuses of so many calls that are sent at the same time."""
    answers = await asyncio.gather(*(getattr(agent, api)(**body) for _ in range(calls)))
    return [answer.status_code for answer in answers]


@every_api
async def test_forty_calls_at_once_stay_within_max_tokens(metered, upstream, api: str) -> None:
    upstream.says(SHORT)
    async with metered(max_tokens=500) as agent:
        statuses = await at_once(agent, 40, api)
        transcript = await agent.transcript()
    assert statuses.count(200) == upstream.count == 4
    assert transcript.end is EndReason.OVER_BUDGET
    assert transcript.whole_usage.tokens_in == 400


@pytest.mark.parametrize("budget", [{"max_cost_usd": 0.045}, {"max_steps": 4}])
async def test_forty_calls_at_once_stay_within_other_budgets(metered, upstream, budget: dict[str, float]) -> None:
    upstream.says(SHORT)
    async with metered(**budget) as agent:
        statuses = await at_once(agent, 40, max_tokens=20)
    assert statuses.count(200) == upstream.count == 4


async def test_forty_calls_at_once_stay_within_the_cost_cap_of_the_run(metered, upstream) -> None:
    upstream.says(SHORT)
    cost_cap = CostCap(0.045)
    async with metered(cost_cap=cost_cap) as one, metered(cost_cap=cost_cap) as other:
        await asyncio.gather(at_once(one, 20), at_once(other, 20))
        for agent in (one, other):
            with pytest.raises(CostCapError, match=r"cost cap of \$0\.04"):
                await agent.transcript()
    assert upstream.count == 4
    assert cost_cap.spent == pytest.approx(0.04)
    assert cost_cap.exhausted


@pytest.mark.parametrize("budget", [{"max_tokens": 1000}, {"max_cost_usd": 0.01}])
async def test_a_first_prompt_that_cannot_fit_is_not_sent(metered, upstream, budget: dict[str, float]) -> None:
    async with metered(**budget) as agent:
        answer = await agent.chat(messages=[{"role": "user", "content": "word " * 800_000}])
        transcript = await agent.transcript()
    assert answer.status_code == 400
    assert message_of(answer).startswith(f"over budget: {next(iter(budget))} is")
    assert upstream.count == 0
    assert transcript.end is EndReason.OVER_BUDGET


@pytest.mark.parametrize("limits", [{}, {"max_tokens": 4096}], ids=["no-limit", "limit"])
async def test_calls_that_fit_together_are_not_refused_for_what_they_might_have_used(
    metered, upstream, limits: dict[str, int]
) -> None:
    upstream.says(SHORT)
    async with metered(max_tokens=6000) as agent:
        assert await at_once(agent, 10, **limits) == [200] * 10
    assert all(call.body.get("max_tokens") == limits.get("max_tokens") for call in upstream.calls), "nor cut short"


async def test_calls_with_room_for_all_are_sent_together(metered, upstream) -> None:
    upstream.says(Silent(600))
    async with metered(max_tokens=100_000, max_cost_usd=100) as agent:
        calls = asyncio.create_task(at_once(agent, 10))
        await until(lambda: upstream.count == 10)
        calls.cancel()


async def test_what_a_failed_call_had_reserved_is_there_for_the_next(metered, upstream) -> None:
    upstream.says(Status(400), Says("Well.", tokens_in=100, tokens_out=20))
    async with metered(max_tokens=200, cost_cap=CostCap(0.02)) as agent:
        assert await at_once(agent, 2, max_tokens=60) == [400, 200]


async def test_a_trial_that_ends_while_its_call_waits_for_money_of_the_run_is_not_the_agents_failure(
    metered, upstream
) -> None:
    upstream.says(Silent(300))
    cost_cap = CostCap(0.02)
    async with metered(cost_cap=cost_cap) as first, metered(cost_cap=cost_cap) as second:
        calls = [asyncio.create_task(agent.chat(max_tokens=100)) for agent in (first, second)]
        await until(lambda: upstream.count and any(agent.trial.ledger.waits_for_cap for agent in (first, second)))
        (waiting,) = [agent for agent in (first, second) if agent.trial.ledger.waits_for_cap]
        with pytest.raises(CostCapError, match="reserved by other trials"):
            await waiting.transcript(Transcript(end=EndReason.TIMED_OUT))
        for call in calls:
            call.cancel()
