"""A judge whose answers are paid for from the money of the run."""

from passgate.tasks.errors import CostCapError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.estimates import Estimate, Sizes
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.price import Price


class CountingJudge:
    """Another judge in one trial, with what its answers have cost there, those that are of no use too."""

    def __init__(self, judge: LlmJudge) -> None:
        self._judge = judge
        self.paid = 0.0
        """US dollars."""

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def votes(self) -> int:
        return self._judge.votes

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """See `Judge.reply`."""
        reply = await self._judge.reply(request)
        self.paid += reply.usage.cost_usd or 0.0
        return reply

    async def close(self) -> None:
        """Nothing: the judge is that of the whole run."""


class ChargedLlmJudge:
    """Another judge, with what each answer costs."""

    def __init__(self, judge: LlmJudge, price: Price | None, cost_cap: CostCap) -> None:
        self._judge = judge
        self._price = price
        self._cost_cap = cost_cap
        self._sizes = Sizes()

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def votes(self) -> int:
        return self._judge.votes

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """See `Judge.reply`. Raises `CostCapError` when there is no money left to ask."""
        characters = sum(len(message.content) for message in request.messages)
        estimate = Estimate.of(characters, None, self._sizes)
        reservation = await self._cost_cap.reserve(estimate.least_cost(self._price), estimate.cost(self._price))
        if reservation is None:
            raise CostCapError(f"the run's cost cap of ${self._cost_cap.cap:g} is spent")
        try:
            reply = await self._judge.reply(request)
        except BaseException:
            self._cost_cap.release(reservation)
            raise
        cost = self._price.cost(reply.usage) if self._price else None
        self._cost_cap.settle(reservation, cost)
        self._sizes = self._sizes.after(characters, reply.usage)
        return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost_usd": cost})})

    async def close(self) -> None:
        """See `Judge.close`."""
        await self._judge.close()
