"""The tools, MCP servers and recordings of a task with an agent of each kind of passgate's own."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.agents import parse_agent
from passgate.tasks.model.agent import AgentSpec, Endpoint, HttpOptions
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.answering import Answer, serving
from tests.builders import a_task
from tests.flows.trials import trial_of
from tests.upstream import Says, ScriptedUpstream

REFUND = {
    "name": "refund",
    "description": "Refunds an order.",
    "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    "command": 'echo "$PASSGATE_TOOL_ARGUMENTS" >> refunds.txt; echo \'{"by": "the task"}\'',
}
REFUNDED = {"type": "state_check", "expect": [{"file": "refunds.txt", "equals": '{"order": 7}\n'}]}
CRM = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("crm")

@server.tool()
def refund(order: int) -> dict:
    return {"by": "crm"}

server.run()
"""
MCP = """
import json, os, sys, urllib.request

def post(url, body):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))

def call(url, name):
    called = {"name": name, "arguments": {"order": 7}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    return post(url, request)["result"]["content"][0]["text"]
"""
COMMAND = f"""{MCP}
model = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
messages = [dict(role="user", content=sys.argv[1])]
while calls := (message := post(model, dict(model="m", messages=messages))["choices"][0]["message"]).get("tool_calls"):
    messages.append(message)
    for asked in calls:
        text = call(os.environ["PASSGATE_MCP_URL"], asked["function"]["name"].removeprefix("mcp__passgate__"))
        messages.append(dict(role="tool", tool_call_id=asked["id"], content=text))
print(message["content"])
"""
FUNCTION = """
async def answer(attempt):
    tool = attempt.tools[-1]["name"]
    return f"done: {await attempt.call_tool(tool, {'order': 7})}"
"""
each_kind = pytest.mark.parametrize("kind", ["cli", "python", "http", "openai"])


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "function_with_tools.py").write_text(FUNCTION)
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "crm.py").write_text(CRM)
    return folder


@pytest.fixture
def service() -> Iterator[str]:
    """An agent at a URL, which calls the tool that its request names."""
    names: dict[str, Any] = {}
    exec(MCP, names)

    def answer(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        asked = json.loads(body)
        try:
            output = names["call"](asked["mcp"], asked["tool"])
        except urllib.request.HTTPError as error:
            output = str(error)
        return 200, {}, json.dumps({"output": f"done: {output}"}).encode()

    with serving(answer) as url:
        yield url


@pytest.fixture
def tried(suites: Path, service: str, upstream: ScriptedUpstream, tmp_path: Path):
    """One trial of an agent of a kind that calls a tool once and is done."""

    async def _tried(kind: str, task: EvalTask, tool: str = "refund") -> FinishedTrial:
        upstream.says(Says(calls=[(f"mcp__passgate__{tool}" if kind == "cli" else tool, {"order": 7})]), Says("done"))
        spec: AgentSpec = {
            "cli": parse_agent(f"cli:{sys.executable} {tmp_path}/command.py {{prompt}}"),
            "python": parse_agent("python:function_with_tools:answer"),
            "http": parse_agent(f"http:{service}"),
            "openai": parse_agent("openai:m"),
        }[kind]
        settings: dict[str, Any] = {"upstreams": {"openai": Endpoint(base_url=upstream.openai_base_url)}}
        if kind == "http":
            settings["http"] = HttpOptions(request={"mcp": "{{ mcp_url }}", "tool": tool})
        return await trial_of(spec.model_copy(update=settings), task, suites)

    return _tried


def recording(suites: Path, order: int, tool: str = "refund") -> dict[str, str]:
    calls = [{"tool": tool, "arguments": {"order": order}, "result": "of the recording"}]
    (suites / "incident.json").write_text(json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]}))
    return {"transcript": "incident.json", "match": "strict"}


def results(finished: FinishedTrial) -> list[tuple[str, Any]]:
    return [(call.tool, call.result) for call in finished.transcript.tool_calls]


@each_kind
async def test_the_tools_of_the_task(tried, kind: str) -> None:
    required = {"type": "tool_calls", "required": [{"tool": "refund", "params": {"order": 7}, "max": 1}]}
    finished = await tried(kind, a_task(tools=[REFUND], graders=[REFUNDED, required]))
    assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
    assert results(finished) == [("refund", {"by": "the task"})]
    assert finished.transcript.output.startswith("done")


@each_kind
async def test_the_mcp_servers_of_the_task(tried, kind: str) -> None:
    servers = {"crm": {"command": f"exec {sys.executable} crm.py"}}
    required = {"type": "tool_calls", "required": ["crm.refund"]}
    task = a_task(tools=[REFUND], mcp_servers=servers, graders=[required])
    finished = await tried(kind, task, "crm__refund")
    assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
    assert results(finished) == [("mcp__crm__refund", {"by": "crm"})]


@each_kind
@pytest.mark.parametrize("order", [7, 8])
async def test_a_recording_passes_its_own_behaviour_and_no_other(tried, suites: Path, kind: str, order: int) -> None:
    said = {"type": "output_check", "contains": ["done"]}
    finished = await tried(kind, a_task(tools=[REFUND], replay=recording(suites, order), graders=[said]))
    if order == 7:
        assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
        assert results(finished) == [("refund", "of the recording")]
    else:
        assert finished.transcript.end is EndReason.REPLAY_MISMATCH
        assert finished.transcript.detail.startswith("call 1 differs (strict)")


@each_kind
async def test_a_budget_ends_the_trial_before_the_tool_runs(tried, kind: str) -> None:
    never = {"type": "state_check", "expect": [{"file": "refunds.txt", "exists": False}]}
    task = a_task(tools=[REFUND], budgets={"max_tool_calls": 0, "max_seconds": 120}, graders=[never])
    finished = await tried(kind, task)
    assert finished.transcript.end is EndReason.OVER_BUDGET
    assert "max_tool_calls is 0" in finished.transcript.detail
    assert [call.refused for call in finished.transcript.tool_calls] == [True]
    assert [grade.passed for grade in finished.trial.grades] == [True]


@pytest.mark.parametrize("kind", ["cli", "python"])
async def test_only_a_python_function_is_not_isolated(suites: Path, tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "written-by-the-agent"
    function = f"def answer(_):\n    open({str(mark)!r}, 'w').close()\n    return 'yes'\n"
    (tmp_path / "writes_outside.py").write_text(function)
    target = f"cli:sh -c 'touch {mark}; echo yes'" if kind == "cli" else "python:writes_outside:answer"
    finished = await trial_of(parse_agent(target), a_task(), suites)
    if kind == "cli" and finished.trial.isolation != "bubblewrap":
        pytest.skip("bubblewrap does not work on this machine")
    assert mark.exists() is (kind == "python")
