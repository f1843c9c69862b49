"""Agents that would go on for ever: the meter ends their trials."""

import asyncio

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.ledger import MOST_UNANSWERED
from passgate.tasks.model.transcript import EndReason
from tests.unit.metering.conftest import Metered, either_way, every_api
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import CutShort, Reply, Status
from tests.upstream_shapes import Says


async def calls_until_over(agent: Metered, api: str = "chat", *, stream: bool = False, most: int = 60) -> int:
    """How many calls an agent makes that stops only when the meter says that the trial is over."""
    over = asyncio.ensure_future(agent.trial.over())
    for number in range(most):
        if over.done():
            return number
        await getattr(agent, api)(stream)
        await asyncio.sleep(0)
    over.cancel()
    return most


@every_api
@either_way
@pytest.mark.parametrize("budget", [{"max_tokens": 10_000}, {"max_cost_usd": 1.0}])
async def test_a_provider_that_does_not_say_what_was_used_ends_a_trial_with_such_a_budget_at_once(
    metered, upstream: ScriptedUpstream, api: str, stream: bool, budget: dict[str, float]
) -> None:
    upstream.says(Says("Well.", says_usage=False))
    async with metered(**budget) as agent:
        assert await calls_until_over(agent, api, stream=stream) == 1
        assert (await getattr(agent, api)(stream)).status_code == 400
        with pytest.raises(MeasurementError, match="does not report what a call used"):
            await agent.transcript()
    assert upstream.count == 1


async def test_without_such_a_budget_nobody_needs_to_know(metered, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("Well.", says_usage=False))
    async with metered(max_steps=5) as agent:
        assert await calls_until_over(agent, most=5) == 5
        assert (await agent.transcript()).end is EndReason.COMPLETED


@either_way
async def test_an_agent_that_repeats_a_wrong_request_has_failed(
    metered, upstream: ScriptedUpstream, stream: bool
) -> None:
    upstream.says(Status(400))
    async with metered(max_steps=3) as agent:
        assert await calls_until_over(agent, stream=stream) == MOST_UNANSWERED
        transcript = await agent.transcript()
    assert transcript.end is EndReason.OVER_BUDGET
    assert transcript.detail.startswith("over budget: 20 calls in a row got no reply, the last one: 127.0.0.1:")
    assert "answered 400" in transcript.detail
    assert upstream.count == MOST_UNANSWERED


async def test_requests_that_are_none_end_the_trial_too(metered, upstream: ScriptedUpstream) -> None:
    async with metered(max_steps=3) as agent:
        for _ in range(MOST_UNANSWERED):
            await agent.chat(messages="no")
        transcript = await agent.transcript()
    assert transcript.end is EndReason.OVER_BUDGET
    assert upstream.count == 0


@pytest.mark.parametrize("fault", [CutShort(2), Status(401)])
async def test_a_provider_that_never_answers_ends_the_trial_as_an_error(
    metered, upstream: ScriptedUpstream, fault: Reply
) -> None:
    upstream.says(fault)
    async with metered(max_steps=3) as agent:
        assert await calls_until_over(agent, stream=True) == MOST_UNANSWERED
        with pytest.raises(MeasurementError):
            await agent.transcript()


async def test_an_answer_in_between_begins_the_count_anew(metered, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda number, _: Says("Well.") if number % 10 == 9 else Status(400)
    async with metered() as agent:
        assert await calls_until_over(agent, most=45) == 45
