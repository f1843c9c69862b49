"""Tools and recordings of a task for agents that are programs of their own, which reach them over MCP."""

import json
import sys
from typing import Any

import pytest

from tests.cli.commands import exits
from tests.cli.metered import GATES
from tests.gates import finished_trials
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

pytestmark = pytest.mark.slow

TASK = """
task_id: refund
suite: golden
description: The agent refunds an order once.
inputs: {prompt: Refund order 7.}
environment:
  budgets: {max_steps: 6, max_tool_calls: 3}
  tools:
    - name: refund
      description: Refunds an order.
      parameters: {type: object, properties: {order: {type: integer}}, required: [order]}
      command: echo "$PASSGATE_TOOL_ARGUMENTS" >> refunds.txt; echo '{"refunded":7}'
REPLAY
graders:
  - {type: output_check, contains: ["done"]}
  - {type: tool_calls, required: [{tool: refund, params: {order: 7}, max: 1}]}
tracked_metrics: [tokens]
"""
REPLAY = "  replay: {transcript: incident.json}"
INCIDENT = {
    "messages": [{"role": "assistant", "content": "", "tool_calls": [
        {"tool": "mcp__shop__refund", "arguments": {"order": 7}, "result": "of the recording"},
    ]}],
    "output": "done",
}  # fmt: skip
AGENT = """
import json, os, sys, urllib.request

def post(url, body):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))

servers = json.load(open(sys.argv[1]))["mcpServers"]
url = servers["passgate"]["url"]
assert url == os.environ["PASSGATE_MCP_URL"] + "/passgate"
call = lambda method, params: post(url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})["result"]
messages = [{"role": "user", "content": "Refund order 7."}]
names = [tool["name"] for tool in call("tools/list", {})["tools"]]
assert names == ["refund"], names
while True:
    message = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "m", "messages": messages})
    message = message["choices"][0]["message"]
    messages.append(message)
    for asked in message.get("tool_calls") or ():
        name = asked["function"]["name"].rpartition("__")[2]
        result = call("tools/call", {"name": name, "arguments": json.loads(asked["function"]["arguments"])})
        text = result["content"][0]["text"]
        messages.append({"role": "tool", "tool_call_id": asked["id"], "content": text})
    if not message.get("tool_calls"):
        break
print(message["content"])
"""
ASKS = Says(calls=[("mcp__passgate__refund", {"order": 7})])
OTHER_ORDER = Says(calls=[("mcp__passgate__refund", {"order": 8})])


@pytest.fixture
def shop(metered: Project) -> Project:
    metered.write("suites/golden/say-yes.yaml", TASK.replace("REPLAY\n", ""))
    metered.write("gates.yaml", GATES)
    metered.write("agent.py", AGENT)
    metered.write("suites/incident.json", json.dumps(INCIDENT))
    command = f"cli:{sys.executable} {metered.path}/agent.py {{mcp_config}}"
    metered.write("agents.yaml", f"version: 1\nagents:\n  bot: {{agent: {json.dumps(command)}}}\n")
    return metered


def run(shop: Project, code: int) -> dict[str, Any]:
    """Run one trial. Return what is in its journal."""
    said = exits(shop, code, "run", "ci_merge", "--agent", "bot", "--k", "1")
    assert "Traceback" not in said.stdout + said.stderr
    (finished,) = finished_trials(shop)
    return finished


def results(finished: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    calls = [call for message in finished["transcript"]["messages"] for call in message["tool_calls"]]
    return [(call["tool"], call["result"], call["refused"]) for call in calls]


def test_a_command_in_a_sandbox_without_network_has_the_tools(shop: Project, upstream: ScriptedUpstream) -> None:
    upstream.says(ASKS, Says("done"))
    assert results(run(shop, 0)) == [("refund", {"refunded": 7}, False)]


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ([OTHER_ORDER, Says("done")], "call 1 differs (strict)"),
        ([Says("done")], "one recorded call did not come (strict)"),
    ],
)
def test_another_behaviour_than_that_of_the_recording_fails(
    shop: Project, upstream: ScriptedUpstream, replies: list[Says], why: str
) -> None:
    shop.write("suites/golden/say-yes.yaml", TASK.replace("REPLAY", REPLAY))
    upstream.says(*replies)
    finished = run(shop, 1)
    assert finished["transcript"]["end"] == "replay_mismatch"
    assert finished["transcript"]["detail"].startswith(why)
