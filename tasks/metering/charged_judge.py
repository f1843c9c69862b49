"""The LLM judge, with what its replies cost."""

from passgate.tasks.errors import CostCapError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.estimates import Estimate, Sizes
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.price import Price


class ChargedLlmJudge:
    """Another judge, with what its replies have cost, those that are of no use too."""

    def __init__(self, judge: LlmJudge, price: Price | None = None, cost_cap: CostCap | None = None) -> None:
        """With a cost cap every reply is paid for from it, by the price; without one, a reply costs what it says."""
        self._judge = judge
        self._price = price
        self._cost_cap = cost_cap
        self._sizes = Sizes()
        self.paid = 0.0  # US dollars

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def votes(self) -> int:
        return self._judge.votes

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """Ask the judge and pay for it. Raises `CostCapError` if there is no money left."""
        reply = await (self._judge.reply(request) if self._cost_cap is None else self._bought(request, self._cost_cap))
        self.paid += reply.usage.cost_usd or 0.0
        return reply

    async def _bought(self, request: JudgeRequest, cost_cap: CostCap) -> JudgeReply:
        characters = sum(len(message.content) for message in request.messages)
        estimate = Estimate.of(characters, None, self._sizes)
        reservation = await cost_cap.reserve(estimate.least_cost(self._price), estimate.cost(self._price))
        if reservation is None:
            raise CostCapError(f"the run's cost cap of ${cost_cap.cap:g} is spent")
        try:
            reply = await self._judge.reply(request)
        except BaseException:
            cost_cap.release(reservation)
            raise
        cost = self._price.cost(reply.usage) if self._price else None
        cost_cap.settle(reservation, cost)
        self._sizes = self._sizes.after(characters, reply.usage)
        return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost_usd": cost})})

    async def close(self) -> None:
        """Do nothing: the owner of the other judge closes it."""
