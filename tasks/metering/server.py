"""The meter's server: on the loopback for agents that take a base URL, and on a Unix socket for those whose sandbox has
no network.
"""

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.temporary import SHORT_PLACE, temporary_folder
from passgate.tasks.metering.access import SERVER
from passgate.tasks.metering.meter import Meter, import_with_mcp
from passgate.tasks.metering.model_call import Route
from passgate.tasks.metering.relay import no_upstream, pass_on, relay
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.model.sandbox import Bridge
from passgate.tasks.providers.registry import PROVIDERS, Provider

if TYPE_CHECKING:
    from passgate.tasks.metering.mcp_server import ToolServer

_LONGEST_SOCKET = 107  # Bytes that the path of a Unix socket may have
_SECONDS_TO_END = 1.0  # For requests whose connection is closed
_REST_OF_PATH = 52  # Of these, what the names of the user, the process and the socket take at most


@asynccontextmanager
async def serving(meter: Meter, label: str = "meter") -> AsyncIterator[None]:
    """Have a meter answer agents over HTTP while the context lasts, on the event loop that it was opened on.

    Trials that begin meanwhile have addresses. `label` begins the name of the folder that its socket lies in.
    """
    # Where a path in the usual place of temporary folders is too long for a socket, it lies in `/tmp`.
    longest = len(os.fsencode(tempfile.gettempdir())) + len(os.fsencode(label)) + _REST_OF_PATH
    with temporary_folder(label, place=None if longest <= _LONGEST_SOCKET else SHORT_PLACE) as folder:
        sockets = [
            # Without the protocol asyncio does not send without delay, and every reply waits 40 ms for an ACK.
            _listening(socket.AF_INET, ("127.0.0.1", 0), socket.IPPROTO_TCP),
            _listening(socket.AF_UNIX, str(folder / "socket")),
        ]
        meter.bridge = Bridge(port=sockets[0].getsockname()[1], socket=folder / "socket")
        application = _Application(meter)
        if find_spec("mcp_types") is not None:
            meter.start_mcp = application.start_mcp
        async with _answering(application, sockets):
            try:
                yield
            finally:
                await application.end_mcp()


@dataclass
class _Application:
    """The server's application."""

    meter: Meter
    _mcp: "asyncio.Future[ToolServer] | None" = None
    _mcp_task: asyncio.Task[None] | None = None

    async def start_mcp(self) -> None:
        """Start the MCP server, once. Return when it answers: agents do not wait for the tools of a slow server."""
        if self._mcp is None:
            self._mcp = asyncio.get_running_loop().create_future()
            self._mcp_task = asyncio.create_task(self._serve_mcp(self._mcp))
        await asyncio.shield(self._mcp)

    async def end_mcp(self) -> None:
        if self._mcp_task is not None:
            self._mcp_task.cancel()
            await asyncio.wait({self._mcp_task})

    async def _serve_mcp(self, started: "asyncio.Future[ToolServer]") -> None:
        try:
            server: ToolServer = (await import_with_mcp("mcp_server")).ToolServer()
            async with server.running():
                started.set_result(server)
                await asyncio.Event().wait()  # Until `end_mcp` cancels this task
        except Exception as error:  # Of a broken package: every trial with tools waits for an answer
            if started.done():
                raise
            broken = MeasurementError(f"the package mcp does not work: {error}")
            started.set_exception(error if isinstance(error, MeasurementError) else broken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            answer = await self._answer(Request(scope, receive))
            await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        # Not `request.url`, which is put together with the Host header that the agent sends.
        _, token, name, path = (*request.scope["path"].split("/", 3), "", "", "")[:4]
        trial, provider = self.meter.trials.get(token), PROVIDERS.get(name)
        if trial is not None and name == "mcp" and trial.tools is not None and self._mcp is not None:
            if path not in {"", SERVER, *trial.tools.servers}:
                return Response("no such server\n", 404)
            if request.method != "POST":
                return Response("send a POST\n", 405, {"allow": "POST"})
            return self._mcp.result().application(trial, trial.tools, path)
        if trial is None or provider is None:
            return Response("no such trial\n", 404)
        if request.headers.get("upgrade", "").lower() == "websocket":
            # Codex asks for one first. At this status it goes on without; at another it asks again for seconds.
            return Response("passgate meters no web sockets\n", 426, {"connection": "close"})
        answer = await trial.until_closed(self._answer_in(trial, request, provider, path))
        return answer or Response("the trial is over\n", 503, {"x-should-retry": "false"})

    async def _answer_in(self, trial: TrialMeter, request: Request, provider: Provider, path: str) -> Response:
        path = path.removeprefix(f"{provider.base_path}/".removeprefix("/"))
        query = request.scope["query_string"].decode("latin-1")
        upstream = self.meter.upstreams.get(provider.name)
        if upstream is None:
            return no_upstream(trial, provider)
        if not upstream.missing_key:
            query = provider.query_without_key(query)
        api = provider.find_api(path, query) if request.method == "POST" else None
        if api is not None:
            return await relay(request, Route(trial, api, upstream, self.meter.spec.model))
        target = f"{path}?{query}" if query else path
        return await pass_on(request, upstream, target, is_free=provider.is_free(request.method, path))


class _Server(uvicorn.Server):
    """A server beside others on one event loop, so that signals are not its to handle."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Have `serve` return."""
        self.should_exit = True
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        # The usual loop looks ten times a second whether the server should end, and so ends a tenth of a second late.
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # No trial is left that an answer is for. The usual shutdown waits a tenth of a second for clients to end, and
        # longer for an agent that does not read its answer.
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if self.server_state.tasks:
            _, still_running = await asyncio.wait(self.server_state.tasks, timeout=_SECONDS_TO_END)
            for task in still_running:
                task.cancel()


@asynccontextmanager
async def _answering(application: _Application, sockets: list[socket.socket]) -> AsyncIterator[None]:
    config = uvicorn.Config(
        application,
        lifespan="off",
        log_config=None,
        log_level="error",  # A refused web socket is no warning to a user
        ws="none",
        access_log=False,
        server_header=False,
        date_header=False,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets))
    try:
        await server.ready.wait()
        yield
    finally:
        server.end()
        await serving
        for listening in sockets:
            listening.close()


def _listening(family: socket.AddressFamily, address: str | tuple[str, int], protocol: int = 0) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM, protocol)
    listening.bind(address)
    listening.listen(2048)
    listening.setblocking(False)
    return listening
