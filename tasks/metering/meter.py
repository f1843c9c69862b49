"""The meter: a server on the loopback between the agents of a run and their models.

Every trial has addresses of its own, `http://127.0.0.1:PORT/TOKEN/openai/v1` and `.../TOKEN/anthropic`. The server
listens on a Unix socket too, for agents whose sandbox has no network.
"""

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from passgate.tasks.files.temporary import SHORT_PLACE, temporary_folder
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.ledger import Ledger
from passgate.tasks.metering.relay import Route, error_response, pass_on, relay
from passgate.tasks.metering.trial_meter import Forbidden, TrialMeter
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.sandbox import Bridge
from passgate.tasks.model.task import Budgets
from passgate.tasks.providers.apis import ANTHROPIC_APIS, OPENAI_APIS
from passgate.tasks.providers.client import Upstream
from passgate.tasks.providers.endpoints import ResolvedEndpoint, resolved_endpoints
from passgate.tasks.providers.retries import RETRY_POLICY, RetryPolicy

_LONGEST_SOCKET = 107
"""Bytes that the path of a Unix socket may have."""
_REST_OF_PATH = 52
"""Of these, what the names of the user, the process and the socket take at most."""
_PLACEHOLDER_KEY = "passgate"
_APIS = {"openai": {api.path: api for api in OPENAI_APIS}, "anthropic": {api.path: api for api in ANTHROPIC_APIS}}


@dataclass(slots=True)
class Meter:
    """The meter of one run."""

    _spec: AgentSpec
    _upstreams: Mapping[str, Upstream]
    _endpoints: Mapping[str, ResolvedEndpoint]
    _prices: PriceTable
    _cost_cap: CostCap
    _needs_price: str | None
    bridge: Bridge
    _trials: dict[str, TrialMeter] = field(default_factory=dict)
    """By their tokens."""

    @contextmanager
    def trial(self, budgets: Budgets, forbidden: Forbidden) -> Iterator[TrialMeter]:
        """The meter of one trial. With the trial its addresses are gone."""
        # Whoever can guess the token of another trial could spend its budget.
        token = secrets.token_urlsafe(24)
        ledger = Ledger(budgets, self._prices, self._cost_cap, needs_price=self._needs_price)
        trial = self._trial_at(f"http://127.0.0.1:{self.bridge.port}/{token}", ledger, forbidden)
        self._trials[token] = trial
        try:
            yield trial
        finally:
            del self._trials[token]
            trial.close()

    def _trial_at(self, root: str, ledger: Ledger, forbidden: Forbidden) -> TrialMeter:
        openai, anthropic = f"{root}/openai/v1", f"{root}/anthropic"
        variables = {
            "OPENAI_BASE_URL": openai,
            "OPENAI_API_BASE": openai,
            "ANTHROPIC_BASE_URL": anthropic,
            **{endpoint.key_variable: _PLACEHOLDER_KEY for endpoint in self._endpoints.values()},
            "OPENAI_API_KEY": _PLACEHOLDER_KEY,
            "ANTHROPIC_API_KEY": _PLACEHOLDER_KEY,
        }
        known = {
            "openai_base_url": openai,
            "anthropic_base_url": anthropic,
            "api_key": _PLACEHOLDER_KEY,
            "model": self._spec.model or "",
        }
        variables |= {name: _filled(value, known) for name, value in self._spec.variables.items()}
        return TrialMeter(openai, anthropic, _PLACEHOLDER_KEY, variables, ledger, forbidden)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The server's application."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        with suppress(ClientDisconnect):
            response = await self._answer(Request(scope, receive))
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        # Not `request.url`, which is put together with the Host header that the agent sends.
        _, token, provider, path = (*request.scope["path"].split("/", 3), "", "", "")[:4]
        trial = self._trials.get(token)
        if trial is None or provider not in _APIS:
            return Response("no such trial\n", 404)
        answer = await trial.until_closed(self._answer_in(trial, request, provider, path))
        return answer or Response("the trial is over\n", 503, {"x-should-retry": "false"})

    async def _answer_in(self, trial: TrialMeter, request: Request, provider: str, path: str) -> Response:
        if provider == "openai":
            path = path.removeprefix("v1/")
        api = _APIS[provider].get(path)
        if api is None:
            return await pass_on(request, trial, provider, self._upstreams[provider], path)
        if request.method != "POST":
            return error_response(api, 405, "method_not_allowed", "send a POST")
        return await relay(request, Route(trial, api, self._upstreams[provider], self._spec.model))


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@asynccontextmanager
async def open_meter(
    spec: AgentSpec,
    prices: PriceTable,
    cost_cap: CostCap,
    *,
    needs_price: str | None = None,
    label: str = "meter",
    environment: Mapping[str, str] = os.environ,
    retry_policy: RetryPolicy = RETRY_POLICY,
) -> AsyncIterator[Meter]:
    """A meter that answers while the context lasts, on the event loop that it is opened on.

    `needs_price` says what makes an unknown price an error for every task. Raises `UsageError` for an endpoint that
    cannot be used.
    """
    endpoints = resolved_endpoints(spec.upstreams, environment)
    async with AsyncExitStack() as stack:
        upstreams = {
            name: await stack.enter_async_context(
                Upstream(endpoint, timeout_seconds=spec.timeout_seconds, retry_policy=retry_policy)
            )
            for name, endpoint in endpoints.items()
        }
        folder = stack.enter_context(temporary_folder(label, place=_short_place(label)))
        sockets = [
            # Without the protocol asyncio does not send without delay, and every reply waits 40 ms for an ACK.
            _listening(socket.AF_INET, ("127.0.0.1", 0), socket.IPPROTO_TCP),
            _listening(socket.AF_UNIX, str(folder / "socket")),
        ]
        bridge = Bridge(port=sockets[0].getsockname()[1], socket=folder / "socket")
        meter = Meter(spec, upstreams, endpoints, prices, cost_cap, needs_price, bridge)
        await stack.enter_async_context(_serving(meter, sockets))
        yield meter


class _Server(uvicorn.Server):
    """A server beside others on one event loop, so that signals are not its to handle."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # No trial is left that an answer is for, and an agent that does not read its own would be waited for.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


@asynccontextmanager
async def _serving(meter: Meter, sockets: list[socket.socket]) -> AsyncIterator[None]:
    config = uvicorn.Config(
        meter,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets))
    try:
        await server.ready.wait()
        yield
    finally:
        server.should_exit = True
        await serving
        for listening in sockets:
            listening.close()


def _listening(family: socket.AddressFamily, address: str | tuple[str, int], protocol: int = 0) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM, protocol)
    listening.bind(address)
    listening.listen(2048)
    listening.setblocking(False)
    return listening


def _short_place(label: str) -> Path | None:
    """`None`, the usual place of temporary folders; where a path in it is too long for a socket, `/tmp`."""
    longest = len(os.fsencode(tempfile.gettempdir())) + len(os.fsencode(label)) + _REST_OF_PATH
    return None if longest <= _LONGEST_SOCKET else SHORT_PLACE
