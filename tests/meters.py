"""Meters with their server, as agents that take a base URL need them, and the built-in agent's calls over HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from passgate.tasks.metering.access import ModelAnswer, Unmetered
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.ledger import Ledger
from passgate.tasks.metering.meter import Meter, open_meter
from passgate.tasks.metering.server import serving
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import ToolCall


@asynccontextmanager
async def open_served_meter(
    spec: AgentSpec, prices: PriceTable, cost_cap: CostCap, *, label: str = "meter", **options: Any
) -> AsyncIterator[Meter]:
    """`open_meter` and its server, while the context lasts."""
    async with open_meter(spec, prices, cost_cap, **options) as meter, serving(meter, label):
        yield meter


def asking(url: str, kind: AgentKind = AgentKind.OPENAI, **settings: Any) -> AgentSpec:
    """An agent whose models are at a base URL, by default the built-in one with the model `model-1`."""
    return AgentSpec(kind=kind, target="model-1", upstreams={"openai": Endpoint(base_url=url)}, **settings)


@asynccontextmanager
async def metered_trial(
    spec: AgentSpec, forbidden: Callable[[ToolCall], bool] = lambda call: False, **budgets: Any
) -> AsyncIterator[TrialMeter]:
    """The served meter of a trial with these budgets, while the context lasts."""
    async with open_served_meter(spec, PriceTable(), CostCap(), environment={}) as meter:
        with meter.trial(Budgets(**budgets), forbidden) as trial:
            yield trial


class OverHttp(Unmetered):
    """Asks whatever answers at a base URL as other programs do: a provider without a meter, or a meter's server."""

    def __init__(self, base_url: str, api_key: str = "trial-key", trial: TrialMeter | None = None) -> None:
        super().__init__()
        ledger = Ledger(Budgets(), PriceTable().price, CostCap(), needs_price=None)
        self.trial = trial or TrialMeter({}, "", {}, ledger, lambda call: False, TrialMeter.complete)
        self.base_urls = {"openai": base_url}
        self.api_key = api_key

    async def complete(self, content: bytes) -> ModelAnswer:
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        async with httpx.AsyncClient(trust_env=False, timeout=None, verify=False) as client:
            answer = await client.post(f"{self.base_urls['openai']}/chat/completions", content=content, headers=headers)
        return ModelAnswer(answer.status_code, answer.content)
