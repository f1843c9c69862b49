"""MCP servers of a task behind a trial's own server: real servers, as commands in a sandbox and over HTTP."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from passgate.tasks.agents.tools import RecordedTools, SandboxTools
from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.tool_calls import is_forbidden
from passgate.tasks.metering.mcp_servers import connected_servers
from passgate.tasks.model.graders import ToolPattern
from passgate.tasks.model.task import McpServer, Tool
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript
from tests.answering import Answer, serving
from tests.builders import a_task
from tests.processes import marked_processes
from tests.unit.conftest import OpenSandbox
from tests.unit.metering.conftest import Metered
from tests.upstream_shapes import Says
from tests.waiting import until

CRM = '''
import os, pathlib, sys, time
from mcp.server.mcpserver import MCPServer

server = MCPServer("crm")
workspace = pathlib.Path(os.environ["PASSGATE_WORKSPACE"])

@server.tool()
def find(customer: str) -> dict:
    """Find a customer."""
    with (workspace / "calls.txt").open("a") as file:
        file.write(customer + "\\n")
    return {"customer": customer, "orders": [1, 2]}

@server.tool()
def book(room: int) -> str:
    """Another tool of this name."""
    return f"by crm: {room}"

@server.tool()
def fail() -> str:
    raise ValueError("no such customer")

@server.tool()
def die() -> str:
    os._exit(3)

@server.resource("crm://customers")
def customers() -> str:
    return "Ada, Bo"

@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."

server.run()
'''
ASKING = """
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("asking")

class Answer(BaseModel):
    sure: bool

@server.tool()
async def progress(context: Context) -> str:
    await context.report_progress(1, 2, "halfway")
    return "done"

@server.tool()
async def sampling(context: Context) -> str:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Hello."))
    return str(await context.session.create_message([said], max_tokens=9))

@server.tool()
async def elicitation(context: Context) -> str:
    return str(await context.elicit("Are you sure?", Answer))

server.run()
"""
ODD = """
import json, sys

what = sys.argv[1]
tool = {"name": "find", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["a"]}}
offers = {"capabilities": {"tools": {}}, "serverInfo": {"name": "", "version": ""}}
answers = {
    "initialize": {"protocolVersion": "2025-06-18", **offers},
    "tools/list": {"tools": [{"name": "find"} if what == "list" else tool]},
    "tools/call": {"content": [{"type": "hologram"} if what == "content" else {"type": "text", "text": "found"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"result": answers.get(asked["method"])}
    if what.startswith("-") and asked["method"] == "tools/call" or not answer["result"]:
        answer = {"error": {"code": int(what) if what.startswith("-") else -32601, "message": "no rooms left"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
BOOK = Tool(name="book", description="Books a room.", command="echo by the task")
WISHES = ["progress", "sampling", "elicitation"]
OpenTrial = Callable[..., AbstractAsyncContextManager[tuple[Metered, Client]]]


@pytest.fixture
def crm(suites: Path) -> dict[str, McpServer]:
    (suites / "crm.py").write_text(CRM, encoding="utf-8")
    return {"crm": McpServer(command=f"exec {sys.executable} crm.py")}


@pytest.fixture
def trial(metered: Any, sandbox_of: OpenSandbox, suites: Path) -> OpenTrial:
    """A trial's meter with these servers, and a client of it."""

    @asynccontextmanager
    async def _trial(
        servers: Mapping[str, McpServer], path: str = "", **options: Any
    ) -> AsyncIterator[tuple[Metered, Client]]:
        task = a_task(tools=[BOOK])
        async with sandbox_of(task) as sandbox:
            options.pop("workspaces", []).append(sandbox.workspace)
            toolbox = options.pop("toolbox", SandboxTools(task.tools, sandbox, suites))
            async with (
                connected_servers(servers, sandbox.for_the_agent, suites) as connected,
                metered(toolbox=toolbox, offered=task.tools, servers=connected, **options) as agent,
                Client(f"{agent.trial.mcp_url}{path}") as client,
            ):
                yield agent, client

    return _trial


async def test_the_agent_gets_all_that_a_server_offers(trial: OpenTrial, crm: dict[str, McpServer]) -> None:
    async with trial(crm) as (agent, client):
        tools = {tool.name: tool.description for tool in (await client.list_tools()).tools}
        assert tools == {
            "book": "Books a room.",
            "find": "Find a customer.",
            "crm__book": "Another tool of this name.",
            "fail": "",
            "die": "",
        }
        found = await client.call_tool("find", {"customer": "Ada"})
        assert json.loads(found.content[0].text) == {"customer": "Ada", "orders": [1, 2]}
        assert (await client.call_tool("book", {})).content[0].text == "by the task\n"
        assert (await client.call_tool("crm__book", {"room": 7})).content[0].text == "by crm: 7"
        assert "Error executing tool fail" in (await client.call_tool("fail", {})).content[0].text
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["crm://customers"]
        assert (await client.read_resource("crm://customers")).contents[0].text == "Ada, Bo"
        assert [one.name for one in (await client.list_prompts()).prompts] == ["greet"]
        assert (await client.get_prompt("greet", {"name": "Bo"})).messages[0].content.text == "Greet Bo."
        for asked in (client.read_resource("crm://others"), client.get_prompt("others")):
            with pytest.raises(MCPError, match=r"there is no|Unknown"):
                await asked
        calls = [(call.tool, call.is_error) for call in (await agent.transcript()).tool_calls]
        names = ["mcp__crm__find", "book", "mcp__crm__book", "mcp__crm__fail"]
        assert calls == [*zip(names, [False, False, False, True], strict=True)]


async def test_a_server_has_an_address_of_its_own(trial: OpenTrial, crm: dict[str, McpServer]) -> None:
    async with trial(crm, "/crm") as (agent, client):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["find", "book", "fail", "die"]
        assert (await client.call_tool("book", {"room": 7})).content[0].text == "by crm: 7"
        assert (await agent.client.post(f"{agent.trial.mcp_url}/others", json={})).status_code == 404
        async with Client(f"{agent.trial.mcp_url}/passgate") as own:
            assert [tool.name for tool in (await own.list_tools()).tools] == ["book"]


@pytest.mark.parametrize("name", ["mcp__crm__find", "crm_find", "find"])
async def test_the_call_of_a_model_and_that_of_its_agent_are_one(
    trial: OpenTrial, crm: dict[str, McpServer], upstream: Any, name: str
) -> None:
    upstream.says(Says(calls=[(name, {"customer": "Ada"})]))
    async with trial(crm, max_tool_calls=1) as (agent, client):
        await agent.chat()
        await client.call_tool("find", {"customer": "Ada"})
        (call,) = (await agent.transcript()).tool_calls
    assert (call.tool, call.result) == ("mcp__crm__find", {"customer": "Ada", "orders": [1, 2]})


@pytest.mark.parametrize("name", ["mcp__crm-eu__find", "mcp__crm_eu__find", "crm_eu_find", "Crm-EU.find"])
async def test_a_client_may_write_a_server_as_its_model_allows(
    trial: OpenTrial, crm: dict[str, McpServer], upstream: Any, name: str
) -> None:
    upstream.says(Says(calls=[(name, {"customer": "Ada"})]))
    async with trial({"crm": crm["crm"], "crm-eu": crm["crm"]}, "/crm-eu", max_tool_calls=1) as (agent, client):
        await agent.chat()
        await client.call_tool("find", {"customer": "Ada"})
        (call,) = (await agent.transcript()).tool_calls
    assert (call.tool, call.result) == ("mcp__crm-eu__find", {"customer": "Ada", "orders": [1, 2]})


@pytest.mark.parametrize(
    "names",
    [
        ("mcp__crm__book", "mcp__passgate__book"),
        ("crm.book", "passgate.book"),
        ("mcp_passgate_crm__book", "passgate-book"),
        ("book", "passgate_book"),
        ("crm_book", "book"),
    ],
)
async def test_of_two_servers_with_a_tool_of_one_name_the_one_counts_that_the_model_names(
    trial: OpenTrial, crm: dict[str, McpServer], upstream: Any, names: tuple[str, str]
) -> None:
    upstream.says(Says(calls=[(name, {"room": room}) for name, room in zip(names, (7, 8), strict=True)]))
    async with trial(crm, max_tool_calls=2) as (agent, client):
        await agent.chat()
        # The agent makes the calls in another order, and fills in what the model left out.
        await client.call_tool("book", {"room": 8, "nights": 1})
        await client.call_tool("crm__book", {"room": 7})
        found = (await agent.transcript()).tool_calls
    assert [(call.tool, call.arguments["room"], call.result) for call in found] == [
        ("mcp__crm__book", 7, {"result": "by crm: 7"}),
        ("book", 8, "by the task\n"),
    ]


@pytest.mark.parametrize("pattern", ["crm.find", "find"])
@pytest.mark.parametrize("asks", [False, True], ids=["no model asks", "a model asks"])
async def test_a_forbidden_call_does_not_reach_the_server(
    trial: OpenTrial, crm: dict[str, McpServer], upstream: Any, pattern: str, asks: bool
) -> None:
    upstream.says(Says(calls=[("find", {"customer": "Ada"})]))
    workspaces: list[Path] = []
    forbids = partial(is_forbidden, pattern=ToolPattern(tool=pattern))
    async with trial(crm, forbidden=forbids, workspaces=workspaces) as (agent, client):
        if asks:
            await agent.chat()
        assert (await client.call_tool("find", {"customer": "Ada"})).is_error
        found = await agent.transcript()
        assert not (workspaces[0] / "calls.txt").exists()
    assert found.end is EndReason.FORBIDDEN_CALL
    assert is_forbidden(found.tool_calls[0], ToolPattern(tool=pattern))
    assert all(call.refused for call in found.tool_calls)


async def test_a_recording_answers_in_place_of_a_server(trial: OpenTrial, crm: dict[str, McpServer]) -> None:
    call = ToolCall(tool="mcp__crm__find", arguments={"customer": "Ada"}, result="of the recording")
    recording = Transcript(messages=(Message(role="assistant", tool_calls=(call,)),))
    async with trial(crm, toolbox=RecordedTools(recording, "strict")) as (agent, client):
        assert (await client.call_tool("find", {"customer": "Ada"})).content[0].text == "of the recording"
        assert (await agent.transcript()).end is EndReason.COMPLETED


async def test_a_server_that_dies_is_no_failure_of_the_agent(trial: OpenTrial, crm: dict[str, McpServer]) -> None:
    async with trial(crm) as (agent, client):
        assert (await client.call_tool("die", {})).is_error
        with pytest.raises(MeasurementError, match="the MCP server crm: "):
            await agent.transcript()


def odd(suites: Path, what: str) -> dict[str, McpServer]:
    """A server that answers so."""
    (suites / "odd.py").write_text(ODD, encoding="utf-8")
    return {"odd": McpServer(command=f"exec {sys.executable} odd.py {what}")}


@pytest.mark.parametrize("code", [-32000, -32001, -32603])
async def test_an_error_that_a_server_answers_is_one_of_its_tool(trial: OpenTrial, suites: Path, code: int) -> None:
    async with trial(odd(suites, str(code))) as (agent, client):
        answer = await client.call_tool("find", {})
        (call,) = (await agent.transcript()).tool_calls
    assert (answer.is_error, answer.content[0].text) == (True, "no rooms left")
    assert (call.is_error, call.result) == (True, "no rooms left")


async def test_a_result_that_its_own_schema_does_not_fit_is_the_clients_to_judge(
    trial: OpenTrial, suites: Path
) -> None:
    async with trial(odd(suites, "text")) as (agent, client):
        with pytest.raises(RuntimeError, match="did not return structured content"):
            await client.call_tool("find", {})
        (call,) = (await agent.transcript()).tool_calls
    assert (call.is_error, call.result) == (False, "found")


async def test_an_answer_that_is_not_of_the_protocol_is_no_failure_of_the_agent(trial: OpenTrial, suites: Path) -> None:
    with pytest.raises(MeasurementError, match=r"(?s)the MCP server odd: .*inputSchema"):
        async with trial(odd(suites, "list")):
            pass
    async with trial(odd(suites, "content")) as (agent, client):
        assert (await client.call_tool("find", {})).is_error
        with pytest.raises(MeasurementError, match=r"(?s)the MCP server odd: .*hologram"):
            await agent.transcript()


async def test_what_a_server_asks_of_a_client_is_an_error_and_progress_is_left_out(
    trial: OpenTrial, suites: Path
) -> None:
    (suites / "asking.py").write_text(ASKING, encoding="utf-8")
    async with trial({"asking": McpServer(command=f"exec {sys.executable} asking.py")}) as (agent, client):

        async def note(*told: Any) -> None:
            raise AssertionError(told)

        answers = [await client.call_tool(name, {}, progress_callback=note) for name in WISHES]
        assert [answer.is_error for answer in answers] == [False, True, True]
        assert answers[0].content[0].text == "done"
        assert [call.is_error for call in (await agent.transcript()).tool_calls] == [False, True, True]


async def test_a_command_gets_the_variables_that_the_task_names(
    crm: dict[str, McpServer], suites: Path, monkeypatch: pytest.MonkeyPatch, sandbox_of: OpenSandbox
) -> None:
    command = f'echo "$TOKEN" > "$PASSGATE_WORKSPACE/token.txt"; exec {sys.executable} crm.py'
    servers = {"crm": McpServer(command=command, variables={"TOKEN": "of ${{CRM_TOKEN}}"})}
    monkeypatch.setenv("CRM_TOKEN", "secret-7")
    async with sandbox_of() as sandbox:
        async with connected_servers(servers, sandbox.for_the_agent, suites):
            assert (sandbox.workspace / "token.txt").read_text() == "of secret-7\n"
        monkeypatch.delenv("CRM_TOKEN")
        with pytest.raises(MeasurementError, match="crm: the environment variable CRM_TOKEN is not set"):
            await connected_servers(servers, sandbox, suites).__aenter__()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no license >&2; exit 3", "it ended with exit code 3: no license"),
        ("exec cat", "MCPError: "),
        ("echo hello; sleep 100", "no answer within 1 s"),
        ("exec no-such-program", "it ended with exit code 127: "),
    ],
)
async def test_a_server_that_does_not_start_is_named(
    sandbox_of: OpenSandbox, suites: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.setattr("passgate.tasks.metering.mcp_servers.START_SECONDS", 1.0)
    async with sandbox_of() as sandbox:
        with pytest.raises(MeasurementError) as failure:
            async with connected_servers({"crm": McpServer(command=command)}, sandbox, suites):
                pass
        assert str(failure.value).startswith(f"the MCP server crm did not start: {why}")


async def test_nothing_of_a_server_is_left_after_the_trial(
    trial: OpenTrial, crm: dict[str, McpServer], suites: Path
) -> None:
    mark = f"server-of-{os.getpid()}"
    server = McpServer(
        command=f"(setsid sleep 4242 {mark} < /dev/null > /dev/null 2>&1 &) ; exec {sys.executable} crm.py"
    )
    async with trial({"crm": server}) as (_, client):
        await client.call_tool("find", {"customer": "Ada"})
        assert marked_processes(mark) != []
    await until(lambda: marked_processes(mark) == [])


async def test_a_server_at_a_url_gets_its_headers(
    trial: OpenTrial, monkeypatch: pytest.MonkeyPatch, sandbox_of: OpenSandbox, suites: Path
) -> None:
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    remote, seen = MCPServer("remote"), []

    @remote.tool()
    def hello() -> str:
        return "hello"

    application = remote.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope.get("headers") or ()).get(b"authorization"))
        await application(scope, receive, send)

    monkeypatch.setenv("CRM_TOKEN", "secret-7")
    web = uvicorn.Server(uvicorn.Config(noting, port=0, log_config=None))
    serving = asyncio.create_task(web.serve())
    await until(lambda: web.started)
    url = f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}/mcp"
    try:
        server = McpServer(url=url, headers={"Authorization": "Bearer ${{ CRM_TOKEN }}"})
        async with trial({"remote": server}) as (_, client):
            assert (await client.call_tool("hello", {})).content[0].text == "hello"
        assert b"Bearer secret-7" in seen
        monkeypatch.delenv("CRM_TOKEN")
        async with sandbox_of() as sandbox:
            with pytest.raises(MeasurementError, match="the environment variable CRM_TOKEN is not set"):
                async with connected_servers({"remote": server}, sandbox, suites):
                    pass
    finally:
        web.should_exit = True
        await serving


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (401, {}, b"the token has expired"),
        (404, {}, b""),
        (429, {"content-type": "application/json"}, b'{"error": "too many requests"}'),
        (503, {}, b"down"),
        (200, {"content-type": "text/html"}, b"<p>Sign in to the hotel's network</p>"),
        (200, {"content-type": "application/json"}, b"{"),
        (200, {"content-type": "text/event-stream"}, b"event: message\n\n"),
        (202, {}, b""),
        (307, {"location": "/elsewhere"}, b""),
    ],
)
async def test_a_server_at_a_url_that_does_not_answer_a_call_is_no_failure_of_the_agent(
    trial: OpenTrial, status: int, headers: Mapping[str, str], body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    offers = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "", "version": ""}}
    answers = {"initialize": offers, "tools/list": {"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}}

    def answer(_: BaseHTTPRequestHandler, content: bytes) -> Answer:
        asked = json.loads(content or b"{}")
        if asked.get("method") == "tools/call":
            return status, headers, body
        if asked.get("method") not in answers:
            return 202 if "method" in asked else 405, {}, b""
        told = {"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}
        return 200, {"content-type": "application/json"}, json.dumps(told).encode()

    with serving(answer) as url:
        async with trial({"far": McpServer(url=url)}) as (agent, client):
            assert (await client.call_tool("find", {})).is_error
            with pytest.raises(MeasurementError, match="the MCP server far: "):
                await agent.transcript()
    assert not [record for record in caplog.records if record.name.startswith("mcp")]
