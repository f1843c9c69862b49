"""A judge that costs money."""

import asyncio

import pytest

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.charged_judge import ChargedLlmJudge
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.grade import JudgeMessage, JudgeReply, JudgeRequest
from passgate.tasks.model.price import Price
from passgate.tasks.model.transcript import Usage

REQUEST = JudgeRequest(messages=(JudgeMessage(role="user", content="?"),), fingerprint="f")
CENT = Price(input=100, output=0)


class Oracle:
    name = "a model"
    votes = 3

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        await asyncio.sleep(0)
        return JudgeReply(text="yes", usage=Usage(tokens_in=100, tokens_out=5))

    async def close(self) -> None:
        pass


class Dead(Oracle):
    async def reply(self, request: JudgeRequest) -> JudgeReply:
        raise MeasurementError("down")


async def test_every_answer_is_paid_for_and_without_money_nobody_is_asked() -> None:
    cost_cap = CostCap(0.01)
    judge = ChargedLlmJudge(Oracle(), CENT, cost_cap)
    reply = await judge.reply(REQUEST)
    assert (judge.name, judge.votes, reply.text) == ("a model", 3, "yes")
    assert reply.usage == Usage(tokens_in=100, tokens_out=5, cost_usd=0.01)
    assert cost_cap.spent == pytest.approx(0.01)
    with pytest.raises(CostCapError, match=r"\$0\.01"):
        await judge.reply(REQUEST)


async def test_an_answer_that_did_not_come_costs_nothing() -> None:
    cost_cap = CostCap(1.0)
    with pytest.raises(MeasurementError, match="down"):
        await ChargedLlmJudge(Dead(), CENT, cost_cap).reply(REQUEST)
    assert cost_cap.spent == 0.0
    assert await cost_cap.reserve(1.0, 1.0) is not None


async def test_an_unknown_price_leaves_the_cost_unknown() -> None:
    reply = await ChargedLlmJudge(Oracle(), None, CostCap()).reply(REQUEST)
    assert reply.usage.cost_usd is None
