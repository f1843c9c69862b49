"""Agents made with real SDKs, each from an environment of its own: the tools, budgets and recordings of their gate.

One run of each agent has all tasks below, with a model that is scripted for each. Every agent must do the same.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cli.commands import exits
from tests.flows.sdk_environments import SDKS, python_with
from tests.gates import finished_trials
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Reply
from tests.upstream_shapes import Json, Says

pytestmark = pytest.mark.slow

GATES = """
version: 1
suites:
  golden: {k: 1, metric: pass^k, max_steps: 9, budgets: {max_seconds: 200}}
  adversarial: {k: 1, metric: pass^k, max_steps: 9}
gates:
  ci_merge: {suites: [golden], blocks_on: [golden_regression]}
"""
PRICES = 'version: 1\nmodels: {"*": {input: 100, cached_input: 10, output: 1000}}\n'
BOOK = {
    "name": "book",
    "description": "Books a room.",
    "parameters": {"type": "object", "properties": {"room": {"type": "integer"}}, "required": ["room"]},
    "command": """echo "$PASSGATE_TOOL_ARGUMENTS" >> calls.txt; echo '{"booked": true}'""",
}
CRM = '''
"""An MCP server on its standard streams that notes the calls of its tool."""
import json, os, sys

SCHEMA = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}
server = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "crm", "version": "1"}}

def answer(method, arguments=None, **_):
    if method == "tools/call":
        with open(os.environ["PASSGATE_WORKSPACE"] + "/calls.txt", "a") as file:
            file.write(json.dumps(arguments) + "\\n")
        return {"content": [{"type": "text", "text": "deleted"}]}
    return {"initialize": server, "tools/list": {"tools": [{"name": "delete", "inputSchema": SCHEMA}]}}[method]

for asked in map(json.loads, sys.stdin):
    try:
        said = {"result": answer(asked["method"], **asked.get("params", {}))}
    except KeyError:
        said = {"error": {"code": -32601, "message": "no such method"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
'''
REPLAY = {"replay": {"transcript": "recording.json", "match": "strict"}}
FORBIDDEN = {"type": "tool_calls", "forbidden": [{"tool": "crm.delete", "params": {"customer": "Ada"}}]}
BOOKED = {"booked": True}
THEN = {"booked": "as recorded"}
RECORDED = [{"tool": "book", "arguments": {"room": 7}, "result": THEN}, {"tool": "book", "arguments": {"room": 8}}]


def asks(*rooms: int) -> Says:
    return Says("I book.", calls=[("book", {"room": room}) for room in rooms], cached=40)


def deletes(customer: str) -> Says:
    return Says("I delete.", calls=[("delete", {"customer": customer})], cached=40)


DONE = Says("It is done.", tokens_in=300, cached=40, tokens_out=7)
ASKED_USAGE = (100, 40, 20, 0.0264)
DONE_USAGE = (300, 40, 7, 0.0334)


@dataclass(frozen=True)
class Scene:
    """A task, what the model says in its trial, and what must come of it."""

    said: tuple[Says, ...]
    """The last one again and again."""
    end: str
    steps: int
    calls: list[tuple[str, Json, Any, bool]]
    """As the transcript has them: the tool, its arguments, its result and whether it was refused."""
    run: list[str]
    """The arguments with which a tool ran."""
    environment: Json = field(default_factory=dict)

    def outcome(self) -> "Outcome":
        used = [ASKED_USAGE if reply.calls else DONE_USAGE for reply in self.said]
        used = (used + used[-1:] * self.steps)[: self.steps]
        return self.end, self.steps, self.calls, self.run, used


Outcome = tuple[str, int, list[tuple[str, Json, Any, bool]], list[str], list[tuple[int, int, int, float]]]
BOTH = Scene(
    (asks(7, 8), DONE),
    "completed",
    2,
    [("book", {"room": 7}, BOOKED, False), ("book", {"room": 8}, BOOKED, False)],
    ['{"room": 7}', '{"room": 8}'],
)
SCENES = {
    "parallel-calls-streamed": BOTH,
    "max-steps-streamed": Scene(
        (asks(7),),
        "over_budget",
        3,
        [("book", {"room": 7}, BOOKED, False)] * 3,
        ['{"room": 7}'] * 3,
        {"budgets": {"max_steps": 3}},
    ),
    "max-tool-calls": Scene(
        (asks(7, 8), asks(9)),
        "over_budget",
        2,
        [*BOTH.calls, ("book", {"room": 9}, None, True)],
        BOTH.run,
        {"budgets": {"max_tool_calls": 2}},
    ),
    "forbidden-streamed": Scene(
        (deletes("Bo"), deletes("Ada")),
        "forbidden_call",
        2,
        [
            ("mcp__crm__delete", {"customer": "Bo"}, "deleted", False),
            ("mcp__crm__delete", {"customer": "Ada"}, None, True),
        ],
        ['{"customer": "Bo"}'],
        {"mcp_servers": {"crm": {"command": f"exec {sys.executable} -S crm.py"}}},
    ),
    "replay": Scene(
        (asks(7, 8), DONE),
        "completed",
        2,
        [("book", {"room": 7}, THEN, False), ("book", {"room": 8}, None, False)],
        [],
        REPLAY,
    ),
    "incident-streamed": Scene(
        (asks(7), asks(7), DONE),
        "replay_mismatch",
        2,
        [
            ("book", {"room": 7}, THEN, False),
            ("book", {"room": 7}, "the recording has no such call at this place", False),
        ],
        [],
        REPLAY,
    ),
}


def command(sdk: str, script: str, *more: str) -> Json:
    words = [str(python_with(sdk)), str(SDKS / script), "{prompt}", "{task_id}", *more]
    return {"agent": f"cli:{' '.join(words)}"}


def service(port: str) -> Json:
    model = {"base_url": "{{ openai_base_url }}", "api_key": "{{ api_key }}"}
    request = {"prompt": "{{ prompt }}", "tools": "{{ mcp_url }}", "model": model}
    return {"agent": f"http:http://127.0.0.1:{port}/ask", "http": {"request": request}}


AGENTS: dict[str, Callable[[str], Json]] = {
    "google-genai": lambda _: command("google-genai", "gemini_agent.py"),
    "google-genai, python": lambda _: {"agent": "python:gemini_function:answer"},
    "openai-agents": lambda _: command("openai-agents", "openai_agent.py"),
    "openai-agents, chat": lambda _: command("openai-agents", "openai_agent.py", "chat"),
    "pydantic-ai": lambda _: command("pydantic-ai", "pydantic_agent.py"),
    "langgraph": lambda _: command("langgraph", "langgraph_agent.py"),
    "langgraph, http": service,
}


@contextmanager
def langgraph_service() -> Iterator[str]:
    """Start the service. Yield its port."""
    started = [str(python_with("langgraph")), str(SDKS / "langgraph_service.py")]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def set_up(project: Project, upstream: ScriptedUpstream, agent: Json) -> Counter[str]:
    """Write the tasks and the agent. Return how often the model is asked in each task's trial."""
    asked: Counter[str] = Counter()

    def says(_: int, body: Json) -> Reply:
        text = json.dumps(body)
        task = next(task for task in SCENES if f"<{task}>" in text)
        asked[task] += 1
        return SCENES[task].said[min(asked[task], len(SCENES[task].said)) - 1]

    upstream.script = says
    project.write("gates.yaml", GATES)
    project.write("prices.yaml", PRICES)
    project.write("agents.yaml", json.dumps({"version": 1, "agents": {"bot": agent}}))
    project.write("gemini_function.py", (SDKS / "gemini_function.py").read_text())
    project.write("suites/crm.py", CRM)
    project.write("suites/recording.json", json.dumps({"messages": [{"role": "assistant", "tool_calls": RECORDED}]}))
    for name, scene in SCENES.items():
        task = {
            "task_id": name,
            "suite": "golden",
            "description": "The agent calls its tools.",
            "inputs": {"prompt": f"Do it. <{name}>"},
            "environment": {"tools": [BOOK], **scene.environment},
            "graders": [FORBIDDEN],
            "tracked_metrics": ["cost"],
        }
        project.write(f"suites/golden/{name}.yaml", json.dumps(task))
    project.environment |= {
        "PASSGATE_ENGINE": "none",
        "VIRTUAL_ENV": str(python_with("google-genai").parent.parent),
        "OPENAI_BASE_URL": upstream.openai_base_url,
        "ANTHROPIC_BASE_URL": upstream.anthropic_base_url,
        "GOOGLE_GEMINI_BASE_URL": upstream.url,
        **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-the-real-key"),
    }
    return asked


def outcome(finished: Json, asked: int) -> Outcome:
    """What came of a trial, as a `Scene` says it."""
    transcript = finished["transcript"]
    steps = [message for message in transcript["messages"] if message["role"] == "assistant"]
    calls = [
        (call["tool"], call["arguments"], call["result"], call["refused"])
        for step in steps
        for call in step["tool_calls"]
    ]
    used = [
        (usage["tokens_in"], usage["tokens_cached"], usage["tokens_out"], round(usage["cost_usd"], 6))
        for usage in (step["usage"] for step in steps)
    ]
    diffs = [file["diff"] for file in transcript["file_changes"]["files"] if file["path"] == "calls.txt"]
    # Calls side by side come in any order.
    run = sorted(line[1:] for diff in diffs for line in diff.splitlines() if line.startswith("+{"))
    return transcript["end"], asked, calls, run, used


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_has_its_tools_budgets_and_recordings(
    bare_project: Project, upstream: ScriptedUpstream, name: str
) -> None:
    with langgraph_service() if AGENTS[name] is service else nullcontext("") as port:
        asked = set_up(bare_project, upstream, AGENTS[name](port))
        said = exits(bare_project, 0, "run", "ci_merge", "--agent", "bot")
    assert "Traceback" not in said.stdout + said.stderr
    trials = {finished["trial"]["task_id"]: finished for finished in finished_trials(bare_project)}
    assert set(trials) == set(SCENES)
    for task, scene in SCENES.items():
        assert (task, *outcome(trials[task], asked[task])) == (task, *scene.outcome())
    failed = {task for task, finished in trials.items() if finished["trial"]["status"] == "failed"}
    assert failed == {task for task, scene in SCENES.items() if scene.end != "completed"}
    (violation,) = trials["forbidden-streamed"]["trial"]["grades"][0]["violations"]
    assert violation["rule"] == "forbidden_tool"
