"""An MCP server (Model Context Protocol) that gives each trial's agent the tools of its task, over streamable HTTP.

It needs the package `mcp`, which takes a second to import: import this module late, and not on an event loop.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
)
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from passgate.tasks.metering.access import SERVER, TOOL_VALUE
from passgate.tasks.metering.mcp_servers import ConnectedServer
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.metering.trial_tools import ToolOutcome, TrialTools

_VIEW: Final = "passgate.view"
Context = ServerRequestContext[Any, Request]


class View(NamedTuple):
    """What a client sees at an address: one server, or at the trial's own address all of them as one."""

    tools: TrialTools
    server: str

    @property
    def servers(self) -> Sequence[ConnectedServer]:
        """The MCP servers of the task that the client sees."""
        return [one for name, one in self.tools.servers.items() if self.server in {"", name}]

    def listed_tools(self) -> list[Tool]:
        """Return the tools."""
        # A client refuses a schema that does not say that it is of an object.
        return [
            tool.model_copy(update={"name": name})
            if isinstance(tool, Tool)
            else Tool(name=name, description=tool.description, input_schema={"type": "object", **tool.parameters})
            for name, (_, tool) in self.tools.listed(self.server).items()
        ]


class ToolServer:
    """Serves the trials of a run. A request needs no session: the address says which trial it belongs to."""

    def __init__(self) -> None:
        server: Server[Any] = Server(
            SERVER,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_resource_templates,
            on_read_resource=_read_resource,
            on_list_prompts=_list_prompts,
            on_get_prompt=_get_prompt,
        )
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests in the `async with` block."""
        async with self._manager.run():
            yield

    def application(self, trial: TrialMeter, tools: TrialTools, server: str) -> ASGIApp:
        """Return what answers a request of a trial's agent to a server, or to all, until the trial is closed."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            tools.is_reached = True
            handled = self._manager.handle_request({**scope, _VIEW: View(tools, server)}, receive, send)
            await trial.until_closed(handled)

        return answer


def _view(context: Context) -> View:
    if context.request is None:
        raise ValueError("the request did not come over HTTP")
    view: View = context.request.scope[_VIEW]
    return view


async def _list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=_view(context).listed_tools())


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    view = _view(context)
    server, tool = view.tools.find(params.name, view.server)
    # A client that goes away does not take the call back: the tool may have acted.
    return _result(await asyncio.shield(view.tools.call(server, tool, params.arguments or {})))


def _result(outcome: ToolOutcome) -> CallToolResult:
    value = outcome.result
    if isinstance(outcome.answer, CallToolResult):
        return outcome.answer.model_copy(update={"meta": {**(outcome.answer.meta or {}), TOOL_VALUE: value}})
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=value if isinstance(value, dict) else None,
        is_error=outcome.is_error,
        _meta={TOOL_VALUE: value},
    )


async def _list_resources(context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
    return ListResourcesResult(resources=[one for server in _view(context).servers for one in server.resources])


async def _list_resource_templates(context: Context, _: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    found = [one for server in _view(context).servers for one in server.templates]
    return ListResourceTemplatesResult(resource_templates=found)


async def _read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    servers = _view(context).servers
    # A server that lists the resource, else those that have templates.
    listing = [server for server in servers if any(str(one.uri) == str(params.uri) for one in server.resources)]
    failure = MCPError(INVALID_PARAMS, f"there is no resource {params.uri}")
    for server in listing or [server for server in servers if server.templates]:
        try:
            return await server.client.read_resource(str(params.uri))
        except MCPError as error:
            failure = error
    raise failure


async def _list_prompts(context: Context, _: PaginatedRequestParams | None) -> ListPromptsResult:
    return ListPromptsResult(prompts=[one for server in _view(context).servers for one in server.prompts])


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    for server in _view(context).servers:
        if any(one.name == params.name for one in server.prompts):
            return await server.client.get_prompt(params.name, params.arguments)
    raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name}")
