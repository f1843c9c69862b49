"""The meter: what stands between the agents of a run and their models.

The built-in agent asks it in process. Other agents ask its server (`server`), at addresses that each trial has for
itself: `http://127.0.0.1:PORT/TOKEN/openai/v1` and `.../TOKEN/anthropic`.
"""

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import PLACEHOLDER_KEY, ModelAnswer, Unmetered, meter_addresses, model_variables
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.ledger import Ledger, PriceOf
from passgate.tasks.metering.model_call import Route, complete
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.metering.trial_tools import Forbidden, Toolbox, TrialTools
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.sandbox import Bridge
from passgate.tasks.model.task import Budgets, Tool
from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.client import Upstream
from passgate.tasks.providers.endpoints import resolve_endpoints
from passgate.tasks.providers.retries import RETRY_POLICY, RetryPolicy

if TYPE_CHECKING:
    from passgate.tasks.metering.mcp_servers import ConnectedServer

_MODELS_KNOWN: Final = 1024
_IN_PROCESS_HEADERS: Final = {
    "authorization": f"Bearer {PLACEHOLDER_KEY}",
    "content-type": "application/json",
    "accept": "application/json",
    "user-agent": "passgate",
}
_CHAT_COMPLETIONS: Final = ChatCompletions()


@dataclass(slots=True)
class Meter:
    """The meter of one run."""

    spec: AgentSpec
    upstreams: Mapping[str, Upstream]
    _find_price: PriceOf
    _cost_cap: CostCap
    _needs_price: str | None
    bridge: Bridge | None = None  # Where its server listens; `None` without one
    start_mcp: Callable[[], Awaitable[object]] | None = None  # Starts its MCP server; `None` without the package `mcp`
    trials: dict[str, TrialMeter] = field(default_factory=dict)  # Those that go on and have addresses, by their tokens
    ending: set[asyncio.Task[Any]] = field(default_factory=set)
    """What trials that are over had under way: each has a connection to give back."""

    @contextmanager
    def trial(
        self,
        budgets: Budgets,
        forbidden: Forbidden,
        offered: Sequence[Tool] = (),
        toolbox: Toolbox | None = None,
        servers: "Mapping[str, ConnectedServer] | None" = None,
    ) -> Iterator[TrialMeter]:
        """Open the meter of one trial. Its addresses end with the context.

        The agent gets the `offered` tools, which `toolbox` runs, and what `servers` offer.
        """
        ledger = Ledger(budgets, self._find_price, self._cost_cap, needs_price=self._needs_price)
        token = ""
        if self.bridge is None:
            trial = TrialMeter(Unmetered.base_urls, "", {}, ledger, forbidden, self._complete)
        else:
            # An agent that can guess the token of another trial could spend its budget.
            token = secrets.token_urlsafe(24)
            root = f"http://127.0.0.1:{self.bridge.port}/{token}"
            addresses = meter_addresses(root)
            mcp_url = f"{root}/mcp" if self.start_mcp is not None and toolbox is not None else ""
            variables = model_variables(self.spec, addresses, self.upstreams, mcp_url)
            trial = TrialMeter(addresses, PLACEHOLDER_KEY, variables, ledger, forbidden, self._complete)
            trial.mcp_url = mcp_url
            self.trials[token] = trial
        if toolbox is not None and (self.bridge is None or trial.mcp_url):
            # The built-in agent asks in process, and knows the tools always.
            is_reached = self.bridge is None or self.spec.names_mcp
            trial.tools = TrialTools(offered, toolbox, ledger, forbidden, trial.recorder, servers or {}, is_reached)
        try:
            yield trial
        finally:
            self.trials.pop(token, None)
            for task in trial.close():
                self.ending.add(task)
                task.add_done_callback(self.ending.discard)

    async def _complete(self, trial: TrialMeter, content: bytes) -> ModelAnswer:
        # The built-in agent's model is its target: what the user names, and no choice of an agent's.
        route = Route(trial, _CHAT_COMPLETIONS, self.upstreams["openai"], self.spec.model or self.spec.target)
        return await complete(route, content, _IN_PROCESS_HEADERS)


async def import_with_mcp(name: str) -> ModuleType:
    """Import a module of this package that needs the package mcp. Raise `MeasurementError` if that does not work.

    In a thread: the import takes a second, in which the event loop must answer other agents.
    """
    remedy = "pip install --upgrade 'passgate[mcp]'"
    # The package mcp has it since version 2; an agent's own environment may have an older one.
    if find_spec("mcp_types") is None:
        raise MeasurementError(f"the package mcp is not installed, or older than version 2: {remedy}")
    # It prints the tracebacks of what servers and clients get wrong.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    try:
        return await asyncio.to_thread(import_module, f"{__package__}.{name}")
    except Exception as error:
        raise MeasurementError(f"the package mcp does not work: {error}: {remedy}") from error


@asynccontextmanager
async def open_meter(
    spec: AgentSpec,
    prices: PriceTable,
    cost_cap: CostCap,
    *,
    needs_price: str | None = None,
    environment: Mapping[str, str] = os.environ,
    retry_policy: RetryPolicy = RETRY_POLICY,
) -> AsyncIterator[Meter]:
    """Open a meter for agents of this process while the context lasts, on the running event loop.

    `needs_price` says what makes an unknown price an error for every task. Raises `UsageError` for an unusable
    endpoint.
    """
    endpoints = resolve_endpoints(spec.upstreams, environment)
    async with AsyncExitStack() as stack:
        upstreams = {
            name: await stack.enter_async_context(
                Upstream(endpoint, timeout_seconds=spec.timeout_seconds, retry_policy=retry_policy)
            )
            for name, endpoint in endpoints.items()
        }
        # Every call asks for a price, and a table has hundreds of patterns. Agents name the models: not all are kept.
        price_of = lru_cache(maxsize=_MODELS_KNOWN)(prices.price)
        meter = Meter(spec, upstreams, price_of, cost_cap, needs_price)
        try:
            yield meter
        finally:
            await asyncio.gather(*meter.ending, return_exceptions=True)
