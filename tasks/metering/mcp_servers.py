"""The MCP servers that a task gives to its agent: each trial has its own connections to them."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Self

import anyio
import httpx2
from mcp import Client
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Prompt,
    Resource,
    ResourceTemplate,
    TextContent,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.metering.trial_tools import ToolOutcome
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import quote, quote_end, raw
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import IN_TEMPLATE, McpServer

START_SECONDS: Final = 30.0
"""For a server to start and to answer for the first time."""
MOST_OFFERED: Final = 1000  # Tools, resources or prompts of one server
LONGEST_MESSAGE: Final = 16 * 1024 * 1024  # Bytes
WORKSPACE_VARIABLE: Final = "PASSGATE_WORKSPACE"
_OF_THE_CLIENT: Final = re.compile(
    r"Connection closed|Request '.*' timed out|SSE stream |Failed to parse |Unexpected content type|Redirect to "
    r"|Server returned an error|server answered a request with 202|Session terminated|Not Found$"
)
"""How errors begin that the client makes of no answer. Servers give the codes of these to errors of their own."""
_END_SECONDS: Final = 3.0
_LIFETIME_SECONDS: Final = 24 * 3600.0  # A server ends with its trial


@dataclass(frozen=True)
class ConnectedServer:
    """A trial's connection to a server, with what the server offers."""

    name: str
    client: Client
    tools: tuple[Tool, ...]
    resources: tuple[Resource, ...]
    templates: tuple[ResourceTemplate, ...]
    prompts: tuple[Prompt, ...]

    @classmethod
    async def of(cls, name: str, client: Client) -> Self:
        """Ask a server for what it offers. Raise `MeasurementError` if it does not answer."""
        offers, found = client.server_capabilities, cls(name, client, (), (), (), ())
        try:
            if offers.tools is not None:
                found = replace(found, tools=await _all(lambda at: client.list_tools(cursor=at), "tools"))
            if offers.resources is not None:
                resources = await _all(lambda at: client.list_resources(cursor=at), "resources")
                templates = await _all(lambda at: client.list_resource_templates(cursor=at), "resource_templates")
                found = replace(found, resources=resources, templates=templates)
            if offers.prompts is not None:
                found = replace(found, prompts=await _all(lambda at: client.list_prompts(cursor=at), "prompts"))
        except (MCPError, ValidationError) as error:
            raise _fault(name, error) from error
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool. Return its errors too. Raise `MeasurementError` if the server is gone or does not answer."""
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            # Not `call_tool`, which holds the result against the tool's schema: that is for the agent's client to do.
            answer = await self.client.session.send_request(request, CallToolResult)
        except MCPError as error:
            if _OF_THE_CLIENT.match(str(error)):
                raise _fault(self.name, error) from error
            return ToolOutcome(str(error), is_error=True)
        except ValidationError as error:
            raise _fault(self.name, error) from error
        return ToolOutcome(_value(answer), answer.is_error, answer)


def _fault(server: str, error: Exception) -> MeasurementError:
    return MeasurementError(raw(f"the MCP server {server}: ", quote(str(error), 500)))


async def _all(page: Callable[[str | None], Awaitable[Any]], items: str) -> tuple[Any, ...]:
    """Return all that a server lists, page by page."""
    found: list[Any] = []
    cursor: str | None = None
    while len(found) < MOST_OFFERED:
        answer = await page(cursor)
        found += getattr(answer, items)
        cursor = answer.next_cursor
        if not cursor:
            break
    return tuple(found[:MOST_OFFERED])


def _value(answer: CallToolResult) -> Any:
    """Return the result of a call as graders compare it: its structure, else its text or the JSON value in it, else its
    parts.
    """
    if answer.structured_content is not None:
        return answer.structured_content
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    if len(texts) == len(answer.content):
        text = "\n".join(texts)
        try:
            return parse_json(text)
        except ValueError:
            return text
    return [part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in answer.content]


@asynccontextmanager
async def connected_servers(
    servers: Mapping[str, McpServer], sandbox: Sandbox, suites_folder: Path
) -> AsyncIterator[Mapping[str, "ConnectedServer"]]:
    """Start a task's servers for one trial, and connect to them. End them after the `async with` block.

    Raise `MeasurementError` for a server that does not start, or that cannot be reached.
    """
    async with AsyncExitStack() as stack:
        connected = {}
        for name, server in servers.items():
            opened = (
                _over_http(name, server) if server.command is None else _process(name, server, sandbox, suites_folder)
            )
            connected[name] = await ConnectedServer.of(name, await stack.enter_async_context(opened))
        yield connected


@asynccontextmanager
async def _over_http(name: str, server: McpServer) -> AsyncIterator[Client]:
    headers = _fill_in(name, server.headers)
    async with httpx2.AsyncClient(headers=headers, timeout=server.timeout_seconds) as http:
        transport = streamable_http_client(server.url or "", http_client=http)
        async with _connection(name, server, transport) as client:
            yield client


def _fill_in(name: str, templates: Mapping[str, str]) -> dict[str, str]:
    """Return texts of a server with the environment variables that they name."""
    try:
        return {key: IN_TEMPLATE.sub(lambda found: os.environ[found[1]], text) for key, text in templates.items()}
    except KeyError as error:
        raise MeasurementError(f"the MCP server {name}: the environment variable {error.args[0]} is not set") from error


@asynccontextmanager
async def _process(name: str, server: McpServer, sandbox: Sandbox, suites_folder: Path) -> AsyncIterator[Client]:
    """Run a server's command, with its standard streams as the connection."""
    variables = _fill_in(name, server.variables)
    with _open_pipes() as (theirs, ours):
        running = asyncio.create_task(
            sandbox.run_for_authors(
                ["sh", "-c", server.command or ""],
                folder=suites_folder,
                seconds=_LIFETIME_SECONDS,
                environment={**variables, WORKSPACE_VARIABLE: str(sandbox.workspace)},
                pipes=(theirs[0].fileno(), theirs[1].fileno()),
            )
        )
        # While an end of theirs is open here, nobody sees that the server has ended.
        running.add_done_callback(lambda _: theirs[1].close())
        try:
            async with _connection(name, server, _pipe_transport(*ours), running) as client:
                yield client
            # Its standard input has ended, so it may end by itself.
            await asyncio.wait({running}, timeout=_END_SECONDS)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError, MeasurementError):
                await running


@asynccontextmanager
async def _connection(
    name: str, server: McpServer, transport: Transport, running: "asyncio.Task[Any] | None" = None
) -> AsyncIterator[Client]:
    """Connect to a server, in a task of its own: the task group of a client must end in the task that began it."""
    leave, connected = asyncio.Event(), asyncio.Event()
    client = Client(transport, read_timeout_seconds=server.timeout_seconds)

    async def hold() -> None:
        async with client:
            connected.set()
            await leave.wait()

    holding, waiting = asyncio.create_task(hold()), asyncio.create_task(connected.wait())
    try:
        first = {holding, waiting, *filter(None, [running])}
        await asyncio.wait(first, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not connected.is_set():
            raise MeasurementError(raw(f"the MCP server {name} did not start: ", _reason(holding, running)))
        yield client
    finally:
        waiting.cancel()
        leave.set()
        await asyncio.wait({holding}, timeout=_END_SECONDS)
        holding.cancel()
        await asyncio.wait({holding})


def _reason(holding: "asyncio.Task[None]", running: "asyncio.Task[Any] | None") -> Raw:
    """Return why there is no connection, as the process or the client says it."""
    if running is not None and running.done():
        error = running.exception()
        if error is not None:
            return quote(str(error), 500)
        result = running.result()
        return raw(f"it ended with exit code {result.exit_code}: ", quote_end(result.stderr.strip(), 500))
    if holding.done() and (error := holding.exception()) is not None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return quote(f"{type(error).__name__}: {error}", 500)
    return raw(f"no answer within {START_SECONDS:g} s", quote("", 1))


@contextmanager
def _open_pipes() -> Iterator[tuple[tuple[IO[bytes], IO[bytes]], tuple[IO[bytes], IO[bytes]]]]:
    """Open two pipes. Yield the ends of the server (to read from, to write to), and passgate's own."""
    with ExitStack() as stack:

        def pipe() -> tuple[IO[bytes], IO[bytes]]:
            source, target = os.pipe()
            return stack.enter_context(os.fdopen(source, "rb", 0)), stack.enter_context(os.fdopen(target, "wb", 0))

        their_input, our_output = pipe()
        our_input, their_output = pipe()
        yield (their_input, their_output), (our_input, our_output)


@asynccontextmanager
async def _pipe_transport(source: IO[bytes], target: IO[bytes]) -> AsyncIterator[Any]:
    """Yield the streams of messages that the client reads and writes: JSON, a line each."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_MESSAGE)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    writing, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, target)
    writer = asyncio.StreamWriter(writing, flow, None, loop)
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        async with received:
            while line := await reader.readline():
                try:
                    await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
                except ValueError as error:
                    await received.send(error)

    async def send() -> None:
        async with to_send:
            async for one in to_send:
                writer.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await writer.drain()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            group.start_soon(send)
            yield incoming, outgoing
            group.cancel_scope.cancel()
    finally:
        reading.close()
        writing.close()
