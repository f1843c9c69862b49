"""The tools of a trial for agents of any kind, through the trial's MCP server and real clients."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from mcp import Client

from passgate.tasks.agents import mcp_stdio
from passgate.tasks.agents.interface import ToolError
from passgate.tasks.agents.tools import RecordedTools
from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.meter import import_with_mcp
from passgate.tasks.metering.trial_tools import ToolOutcome
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript
from tests.builders import a_task
from tests.unit.agents.conftest import an_attempt
from tests.unit.metering.conftest import every_api
from tests.upstream_shapes import Says

SCHEMA = {"type": "object", "properties": {"room": {"type": "integer"}}, "required": ["room"]}
BOOK = Tool(name="book", description="Books a room.", parameters=SCHEMA, command="true")
RECORDING = Transcript(
    messages=(
        Message(
            role="assistant",
            tool_calls=(
                ToolCall(tool="mcp__passgate__book", arguments={"room": 7}, result="booked"),
                ToolCall(tool="mcp__passgate__book", arguments={"room": 8}, result="full", is_error=True),
            ),
        ),
    )
)


@dataclass
class Hotel:
    """A toolbox that notes the calls which reach it."""

    result: Any = "booked"
    rooms: list[Any] = field(default_factory=list)
    mismatch: str = ""
    missing: str = ""
    answers_all: bool = False

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        self.rooms.append(arguments.get("room"))
        if isinstance(self.result, MeasurementError):
            raise self.result
        return ToolOutcome(self.result)


def calling(*calls: ToolCall) -> Transcript:
    """A transcript of one step."""
    return Transcript(messages=(Message(role="assistant", tool_calls=calls),))


def calls(transcript: Transcript) -> list[tuple[str, Any, Any, bool]]:
    return [(one.tool, one.arguments.get("room"), one.result, one.refused) for one in transcript.tool_calls]


@pytest.mark.parametrize("result", ["text", "5", 5, None, [1], {"a": {"b": 1}}])
async def test_a_client_finds_the_tools_and_gets_their_results(metered, result: Any) -> None:
    hotel = Hotel(result)
    async with metered(toolbox=hotel, offered=[BOOK]) as agent:
        async with Client(agent.trial.mcp_url) as client:
            (tool,) = (await client.list_tools()).tools
            assert (tool.name, tool.description, tool.input_schema) == ("book", "Books a room.", SCHEMA)
            answer = await client.call_tool("book", {"room": 7})
            text = result if isinstance(result, str) else json.dumps(result)
            assert ([part.text for part in answer.content], answer.is_error) == ([text], False)
        assert calls(await agent.transcript()) == [("book", 7, result, False)]


NAMES = {
    "book": "book",
    "mcp__passgate__book": "book",
    "shop.book": "shop.book",
    "passgate__book": "book",
    "passgate-book": "book",
    "mcp_passgate_book": "book",
}  # As clients write it, and as it is in the transcript


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_model_asks_for_and_the_agent_calls_is_one_call(
    metered, upstream, name: str, stream: bool
) -> None:
    upstream.says(Says(calls=[(name, {"room": 7})]), Says("Done."))
    async with metered(toolbox=Hotel(), offered=[BOOK], max_tool_calls=1) as agent:
        await agent.chat(stream=stream)
        async with Client(agent.trial.mcp_url) as client:
            assert not (await client.call_tool("book", {"room": 7})).is_error
        told = {"role": "tool", "tool_call_id": "call_0_0", "content": "something else"}
        await agent.chat(messages=[{"role": "user", "content": "Go on."}, told])
        assert calls(await agent.transcript()) == [(NAMES[name], 7, "booked", False)]


@pytest.mark.parametrize(
    ("called", "name"),
    [("passgate_get_order", "get-order"), ("passgate-get-order", "get-order"), ("passgate_get_user", "get_user")],
)
async def test_a_client_may_write_a_tool_as_its_model_allows(metered, upstream, called: str, name: str) -> None:
    upstream.says(Says(calls=[(called, {"room": 7})]))
    offered = [BOOK.model_copy(update={"name": one}) for one in ("get-order", "get-user", "get_user")]
    async with metered(toolbox=Hotel(), offered=offered, max_tool_calls=1) as agent:
        await agent.chat()
        async with Client(agent.trial.mcp_url) as client:
            assert not (await client.call_tool(name, {"room": 7})).is_error
        assert calls(await agent.transcript()) == [(name, 7, "booked", False)]


def told_to(api: str, call_id: str, result: str) -> dict[str, Any]:
    """What an agent tells its model of a call in the next request, by the API."""
    match api:
        case "chat":
            return {"messages": [{"role": "tool", "tool_call_id": call_id, "content": result}]}
        case "responses":
            return {"input": [{"type": "function_call_output", "call_id": call_id, "output": result}]}
        case "messages":
            block = {"type": "tool_result", "tool_use_id": call_id, "content": result}
            return {"messages": [{"role": "user", "content": [block]}]}
        case _:
            response = {"name": "mcp__passgate__book", "response": {"output": result}, "id": call_id}
            return {"contents": [{"role": "user", "parts": [{"functionResponse": response}]}]}


@every_api
@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("tells_model", [True, False])
async def test_a_result_that_an_agent_makes_up_is_not_in_the_transcript(
    metered, upstream, api: str, is_made: bool, tells_model: bool
) -> None:
    upstream.says(Says(calls=[("mcp__passgate__book", {"room": 7})]), Says("Done."))
    hotel = Hotel("no room is free")
    async with metered(toolbox=hotel, offered=[BOOK], target="agent {mcp_config}") as agent:
        reply = await getattr(agent, api)()
        call_id = next(iter(re.findall(r'"((?:call|toolu)_\d\w*)"', reply.text)))
        async with Client(agent.trial.mcp_url) as client:
            if is_made:
                await client.call_tool("book", {"room": 7})
        if tells_model:
            await getattr(agent, api)(**told_to(api, call_id, "booked"))
        lie = ToolCall(tool="mcp__passgate__book", arguments={"room": 7}, result="booked", is_error=False)
        found = await agent.transcript(Transcript(messages=(Message(role="assistant", tool_calls=(lie,)),)))
    assert len(hotel.rooms) == int(is_made)
    (call,) = found.tool_calls
    denied = ("the agent did not call this tool", True) if tells_model else (None, None)
    assert (call.result, call.is_error) == (("no room is free", False) if is_made else denied)


async def test_a_report_does_not_add_calls_of_the_tools_that_passgate_runs(metered, upstream) -> None:
    upstream.says(Says("CALL look"))
    look, booked = ToolCall(tool="look", result="free"), ToolCall(tool="book", arguments={"room": 7}, result="booked")
    async with metered(toolbox=Hotel(), offered=[BOOK]) as agent:
        await agent.chat()
        assert (await agent.transcript(calling(look, booked))).tool_calls == (look, booked), "tools of its own"
        async with Client(agent.trial.mcp_url) as client:
            await client.list_tools()
        assert (await agent.transcript(calling(look))).tool_calls == (look,)
        assert (await agent.transcript(calling(look, booked))).tool_calls == ()
        async with Client(agent.trial.mcp_url) as client:
            await client.call_tool("book", {"room": 7})
        lie = booked.model_copy(update={"result": "for nothing"})
        found = await agent.transcript(calling(look, lie))
        assert [(call.tool, call.result) for call in found.tool_calls] == [("look", "free"), ("book", "booked")]


async def test_arguments_that_the_agent_changes_are_those_of_the_call(metered, upstream) -> None:
    upstream.says(Says(calls=[("book", {"room": 7}), ("book", {"room": 8})]))
    hotel = Hotel()
    async with metered(toolbox=hotel, offered=[BOOK], forbidden=lambda call: call.arguments == {"room": 13}) as agent:
        await agent.chat()
        async with Client(agent.trial.mcp_url) as client:
            await client.call_tool("book", {"room": 8})
            await client.call_tool("book", {"room": 9})
            await client.call_tool("book", {"room": 13})
        found = await agent.transcript()
    assert hotel.rooms == [8, 9]
    assert calls(found) == [("book", 9, "booked", False), ("book", 8, "booked", False), ("book", 13, None, True)]
    assert found.end is EndReason.FORBIDDEN_CALL


async def test_a_forbidden_call_does_not_reach_the_tool_and_no_later_one_does(metered) -> None:
    hotel = Hotel()
    async with metered(toolbox=hotel, offered=[BOOK], forbidden=lambda call: call.arguments["room"] == 13) as agent:
        async with Client(agent.trial.mcp_url) as client:
            refused = await client.call_tool("book", {"room": 13})
            assert refused.is_error
            assert refused.content[0].text == "passgate ended this trial: the agent made the forbidden tool call book"
            assert (await client.call_tool("book", {"room": 7})).is_error
        found = await agent.transcript()
    assert hotel.rooms == []
    assert found.end is EndReason.FORBIDDEN_CALL
    assert [call.refused for call in found.tool_calls] == [True, True]


async def test_calls_that_no_model_asked_for_are_counted(metered) -> None:
    hotel = Hotel()
    async with metered(toolbox=hotel, offered=[BOOK], max_tool_calls=2) as agent:
        async with Client(agent.trial.mcp_url) as client:
            answers = await asyncio.gather(*(client.call_tool("book", {"room": room}) for room in range(5)))
        found = await agent.transcript()
    assert len(hotel.rooms) == 2
    assert sorted(answer.is_error for answer in answers) == [False, False, True, True, True]
    assert (found.end, found.detail) == (
        EndReason.OVER_BUDGET,
        "over budget: max_tool_calls is 2 and the agent wanted one more",
    )


async def test_a_tool_that_cannot_be_run_is_no_failure_of_the_agent(metered) -> None:
    async with metered(toolbox=Hotel(MeasurementError("the sandbox is gone")), offered=[BOOK]) as agent:
        async with Client(agent.trial.mcp_url) as client:
            assert (await client.call_tool("book", {"room": 7})).is_error
        with pytest.raises(MeasurementError, match="the sandbox is gone"):
            await agent.transcript()


async def test_a_recording_answers_any_client_by_its_own_names(metered) -> None:
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK]) as agent:
        async with Client(agent.trial.mcp_url) as client:
            assert (await client.call_tool("book", {"room": 7})).content[0].text == "booked"
            assert (await client.call_tool("book", {"room": 8})).is_error
        assert (await agent.transcript()).end is EndReason.COMPLETED


async def test_a_call_that_differs_from_the_recording_ends_the_trial(metered) -> None:
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK]) as agent:
        over = agent.trial.over()
        async with Client(agent.trial.mcp_url) as client:
            assert (await client.call_tool("book", {"room": 8})).is_error
        assert over.done()
        found = await agent.transcript()
    assert found.end is EndReason.REPLAY_MISMATCH
    assert found.detail.startswith("call 1 differs (strict):\n")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_recording_has_calls_side_by_side_in_the_order_of_the_model(metered, upstream, stream: bool) -> None:
    upstream.says(Says(calls=[("book", {"room": 7}), ("read", {}), ("book", {"room": 8})]))
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK]) as agent:
        await agent.chat(stream=stream)
        async with Client(agent.trial.mcp_url) as client:
            last = asyncio.create_task(client.call_tool("book", {"room": 8}))
            await asyncio.sleep(0.2)
            assert (await client.call_tool("book", {"room": 7})).content[0].text == "booked"
            assert (await last).content[0].text == "full"
        found = await agent.transcript()
    assert (found.end, [call[1] for call in calls(found)]) == (EndReason.COMPLETED, [7, None, 8])


async def test_an_agent_that_makes_only_the_later_call_differs(metered, upstream, monkeypatch) -> None:
    monkeypatch.setattr("passgate.tasks.metering.trial_tools._TURN_SECONDS", 0.1)
    upstream.says(Says(calls=[("book", {"room": 7}), ("book", {"room": 8})]))
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK]) as agent:
        await agent.chat()
        async with Client(agent.trial.mcp_url) as client:
            assert (await client.call_tool("book", {"room": 8})).is_error
        assert (await agent.transcript()).end is EndReason.REPLAY_MISMATCH


async def test_recorded_calls_that_do_not_come_are_missed_once_the_agent_has_looked_at_the_tools(metered) -> None:
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK]) as agent:
        async with Client(agent.trial.mcp_url) as client:
            await client.list_tools()
        found = await agent.transcript(Transcript(output="I did it."))
    assert found.end is EndReason.REPLAY_MISMATCH
    assert found.detail.startswith("2 recorded calls did not come (strict):\n")


@pytest.mark.parametrize(
    ("target", "end"), [("agent", EndReason.COMPLETED), ("agent {mcp_config}", EndReason.REPLAY_MISMATCH)]
)
async def test_of_an_agent_that_brings_its_own_tools_nothing_is_missed(metered, target: str, end: EndReason) -> None:
    async with metered(toolbox=RecordedTools(RECORDING, "strict"), offered=[BOOK], target=target) as agent:
        assert (await agent.transcript(Transcript(output="I did it."))).end is end


async def test_a_python_agent_calls_tools_by_its_attempt(metered) -> None:
    hotel = Hotel({"room": 7})
    async with metered(toolbox=hotel, offered=[BOOK], forbidden=lambda call: call.arguments["room"] == 13) as agent:
        attempt = an_attempt(a_task(), variables=agent.trial.variables)
        assert await attempt.call_tool("book", {"room": 7}) == {"room": 7}
        hotel.result = None
        assert await attempt.call_tool("book", {"room": 8}) is None
        with pytest.raises(ToolError, match="forbidden tool call book"):
            await attempt.call_tool("book", {"room": 13})
    with pytest.raises(ToolError, match="this trial has no tools"):
        await an_attempt(a_task()).call_tool("book")
    assert hotel.rooms == [7, 8]


async def test_a_client_that_knows_only_its_standard_streams_has_a_command(metered) -> None:
    async with metered(toolbox=Hotel(), offered=[BOOK]) as agent:
        messages = [
            {"id": 1, "method": "tools/call", "params": {"name": "book", "arguments": {"room": 7}}},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "no/such/method"},
        ]
        lines = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
        command = [sys.executable, "-I", "-S", str(Path(mcp_stdio.__file__)), agent.trial.mcp_url]
        process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)
        out, _ = await process.communicate(lines)
        answers = sorted(map(json.loads, out.splitlines()), key=lambda answer: answer["id"])
        assert [answer["id"] for answer in answers] == [1, 2]
        assert answers[0]["result"]["content"] == [{"type": "text", "text": "booked"}]
        assert "error" in answers[1]


async def test_the_server_of_a_trial_is_its_own_and_ends_with_it(metered) -> None:
    async with metered(toolbox=Hotel(), offered=[BOOK]) as agent, metered() as other:
        url = agent.trial.mcp_url
        assert (await agent.client.get(url)).status_code == 405
        assert other.trial.mcp_url == ""
        bare = other.trial.base_urls["openai"].replace("/openai/v1", "/mcp")
        assert (await agent.client.post(bare, json={})).status_code == 404
        too_large = await agent.client.post(url, content=b" " * (5 * 2**20))
        assert too_large.status_code == 413
        broken = await agent.client.post(url, content=b"{", headers={"accept": "application/json, text/event-stream"})
        assert broken.status_code == 400


OLD = "the package mcp is not installed, or older than version 2: pip install --upgrade 'passgate[mcp]'"
WRONG = {
    "too old": ImportError("cannot import name 'Server' from 'mcp.server.lowlevel'"),
    "of another version": TypeError("unexpected keyword argument 'on_list_tools'"),
}


@pytest.mark.parametrize("found", [None, *WRONG], ids=["version 1", *WRONG])
async def test_a_package_mcp_that_does_not_work_is_an_error_of_every_trial_at_once(
    metered, monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    async def start() -> None:
        async with metered(toolbox=Hotel(), offered=[BOOK]) as agent:
            assert agent.trial.mcp_url == ""

    if found is None:
        monkeypatch.setattr("passgate.tasks.metering.meter.find_spec", lambda _: None)
        with pytest.raises(MeasurementError, match=re.escape(OLD)):
            await import_with_mcp("mcp_servers")
        monkeypatch.setattr("passgate.tasks.metering.server.find_spec", lambda _: None)
        await start()
        return

    def broken(_: str) -> ModuleType:
        if found == "too old":
            raise WRONG[found]
        module = ModuleType("mcp_server")
        module.ToolServer = Mock(side_effect=WRONG[found])
        return module

    monkeypatch.setattr("passgate.tasks.metering.meter.import_module", broken)
    for _ in range(2):
        with pytest.raises(MeasurementError, match=f"the package mcp does not work: {WRONG[found]}"):
            await asyncio.wait_for(start(), 60)
