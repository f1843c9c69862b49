"""A judge that costs money."""

import asyncio

import pytest

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.charged_judge import ChargedJudge
from passgate.tasks.metering.cost_cap import Purse
from passgate.tasks.model.judge import JudgeMessage, JudgeReply, JudgeRequest
from passgate.tasks.model.price import Price
from passgate.tasks.model.transcript import Usage

REQUEST = JudgeRequest(messages=(JudgeMessage(role="user", content="?"),), fingerprint="f")
CENT = Price(input=100, output=0)


class Oracle:
    name = "a model"
    votes = 3

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(text="yes", usage=Usage(tokens_in=100, tokens_out=5))

    async def close(self) -> None:
        pass


class Slow(Oracle):
    async def reply(self, request: JudgeRequest) -> JudgeReply:
        await asyncio.sleep(0.01)
        return await super().reply(request)


class Dead(Oracle):
    async def reply(self, request: JudgeRequest) -> JudgeReply:
        raise MeasurementError("down")


async def test_every_answer_is_paid_for() -> None:
    purse = Purse(1.0)
    judge = ChargedJudge(Oracle(), CENT, purse)
    reply = await judge.reply(REQUEST)
    assert (judge.name, judge.votes, reply.text) == ("a model", 3, "yes")
    assert reply.usage == Usage(tokens_in=100, tokens_out=5, cost_usd=0.01)
    assert purse.spent == pytest.approx(0.01)


async def test_without_money_nobody_is_asked() -> None:
    judge = ChargedJudge(Oracle(), CENT, Purse(0.01))
    await judge.reply(REQUEST)
    with pytest.raises(CostCapError, match=r"\$0\.01"):
        await judge.reply(REQUEST)


async def test_forty_questions_at_once_stay_within_the_cap() -> None:
    purse = Purse(0.045)
    judge = ChargedJudge(Slow(), CENT, purse)
    replies = await asyncio.gather(*(judge.reply(REQUEST) for _ in range(40)), return_exceptions=True)
    assert [isinstance(reply, JudgeReply) for reply in replies] == [True] * 4 + [False] * 36
    assert purse.spent == pytest.approx(0.04)


async def test_an_answer_that_did_not_come_costs_nothing() -> None:
    purse = Purse(1.0)
    with pytest.raises(MeasurementError, match="down"):
        await ChargedJudge(Dead(), CENT, purse).reply(REQUEST)
    assert purse.spent == 0.0
    assert await purse.reserve(1.0, 1.0) is not None


async def test_an_unknown_price_leaves_the_cost_unknown() -> None:
    reply = await ChargedJudge(Oracle(), None, Purse()).reply(REQUEST)
    assert reply.usage.cost_usd is None
