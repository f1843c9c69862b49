"""Meters with their server, as agents that take a base URL need them, and the built-in agent's calls over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from passgate.tasks.metering.access import ModelAnswer, Unmetered
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.meter import Meter, open_meter
from passgate.tasks.metering.server import serving
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.price import PriceTable


@asynccontextmanager
async def open_served_meter(
    spec: AgentSpec, prices: PriceTable, cost_cap: CostCap, *, label: str = "meter", **options: Any
) -> AsyncIterator[Meter]:
    """`open_meter` and its server, while the context lasts."""
    async with open_meter(spec, prices, cost_cap, **options) as meter, serving(meter, label):
        yield meter


class OverHttp(Unmetered):
    """Asks whatever answers at a base URL as other programs do: a provider without a meter, or a meter's server."""

    def __init__(self, base_url: str, api_key: str = "trial-key") -> None:
        super().__init__()
        self.openai_base_url = base_url
        self.api_key = api_key

    async def complete(self, content: bytes) -> ModelAnswer:
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        async with httpx.AsyncClient(trust_env=False, timeout=60, verify=False) as client:
            answer = await client.post(f"{self.openai_base_url}/chat/completions", content=content, headers=headers)
        return ModelAnswer(answer.status_code, answer.content)
