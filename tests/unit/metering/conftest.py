"""A meter before a scripted provider."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.metering.trial_tools import Toolbox
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets, Tool
from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.providers.calls import Stage
from passgate.tasks.providers.retries import RetryPolicy
from tests.meters import open_served_meter
from tests.upstream import ScriptedUpstream
from tests.waiting import LIMIT

CENT = PriceTable(models={"*": Price(input=100, output=0)})
"""The scripted provider's hundred tokens of input cost a cent."""


@dataclass
class Metered:
    """One trial's meter and a client that speaks the four APIs by hand."""

    trial: TrialMeter
    client: httpx.AsyncClient
    said: list[str] = field(default_factory=list)

    async def chat(self, stream: bool = False, **body: Any) -> httpx.Response:
        asked = {"model": "m", "messages": [{"role": "user", "content": "Go on."}], "stream": stream}
        return await self.client.post(f"{self.trial.base_urls['openai']}/chat/completions", json=asked | body)

    def streaming(self, text: str = "?") -> AbstractAsyncContextManager[httpx.Response]:
        """A streamed chat completion that nobody has read yet."""
        asked = {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}
        return self.client.stream("POST", f"{self.trial.base_urls['openai']}/chat/completions", json=asked)

    async def responses(self, stream: bool = False, **body: Any) -> httpx.Response:
        asked = {"model": "m", "input": "Go on.", "stream": stream}
        return await self.client.post(f"{self.trial.base_urls['openai']}/responses", json=asked | body)

    async def messages(self, stream: bool = False, **body: Any) -> httpx.Response:
        asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Go on."}], "stream": stream}
        return await self.client.post(f"{self.trial.base_urls['anthropic']}/v1/messages", json=asked | body)

    async def gemini(self, stream: bool = False, model: str = "m", **body: Any) -> httpx.Response:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        asked = {"contents": [{"role": "user", "parts": [{"text": "Go on."}]}]}
        url = f"{self.trial.base_urls['gemini']}/v1beta/models/{model}:{method}"
        return await self.client.post(url, json=asked | body)

    @property
    def stages(self) -> list[Stage]:
        """What the calls under way are waiting for."""
        return [call.progress.stage for call in self.trial._open]

    async def transcript(self, reported: Transcript | None = None) -> Transcript:
        """The trial's transcript. Raises its error."""
        return (await self.trial.transcript(reported or Transcript())).result()


QUICK = RetryPolicy(
    attempts=3, first_pause=0.01, longest_pause=0.02, connect_seconds=math.inf, failing_seconds=math.inf
)
OpenMeter = Callable[..., AbstractAsyncContextManager[Metered]]

every_api = pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini"])
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def message_of(response: httpx.Response) -> str:
    message: str = response.json()["error"]["message"]
    return message


@pytest.fixture
def metered(upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch) -> OpenMeter:
    for name in ("server._SECONDS_TO_END", "trial_meter._SETTLE_SECONDS"):
        monkeypatch.setattr(f"passgate.tasks.metering.{name}", LIMIT)

    @asynccontextmanager
    async def _metered(
        *,
        prices: PriceTable = CENT,
        cost_cap: CostCap | None = None,
        forbidden: Callable[[ToolCall], bool] = lambda call: False,
        needs_price: str | None = None,
        silence: float = 300,
        model: str | None = None,
        environment: dict[str, str] | None = None,
        openai_base_url: str = "",
        toolbox: Toolbox | None = None,
        offered: Sequence[Tool] = (),
        servers: Any = None,
        target: str = "agent",
        **budgets: Any,
    ) -> AsyncIterator[Metered]:
        endpoints = {
            "openai": Endpoint(base_url=openai_base_url or upstream.openai_base_url),
            "anthropic": Endpoint(base_url=upstream.anthropic_base_url),
            "gemini": Endpoint(base_url=upstream.url),
        }
        spec = AgentSpec(kind=AgentKind.CLI, target=target, upstreams=endpoints, model=model, timeout_seconds=silence)
        async with (
            open_served_meter(
                spec,
                prices,
                cost_cap or CostCap(),
                needs_price=needs_price,
                environment=environment or {},
                retry_policy=QUICK,
            ) as meter,
            httpx.AsyncClient(timeout=None, trust_env=False) as client,
        ):
            if toolbox is not None and meter.start_mcp is not None:
                await meter.start_mcp()
            with meter.trial(Budgets(**budgets), forbidden, offered, toolbox, servers) as trial:
                yield Metered(trial, client)

    return _metered
