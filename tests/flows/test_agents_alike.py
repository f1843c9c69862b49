"""One task, one model, five kinds of agent: their transcripts have one shape and are graded alike."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from passgate.tasks.agents import parse_agent
from passgate.tasks.model.agent import Endpoint, HttpOptions
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.builders import a_task
from tests.flows.trials import trial_of
from tests.project import REPOSITORY
from tests.unit.agents import agent_server
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

PRICES = PriceTable(models={"*": Price(input=10, output=30)})
TOOL = {
    "name": "get_order",
    "description": "The state of an order.",
    "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    "command": "cat > /dev/null; echo '\"shipped\"'",
}
TASK = a_task(
    inputs={"prompt": "What is the state of order 17?"},
    tools=[TOOL],
    budgets={"max_steps": 20, "max_seconds": 120},
    graders=[
        {"type": "output_check", "contains": ["shipped"]},
        {"type": "tool_calls", "required": [{"tool": "get_order", "params": {"order": "17"}}]},
        {"type": "trajectory_metrics", "max_steps": 2, "min_tool_calls": 1, "max_tool_calls": 1},
    ],
)
SCRIPT = [Says(calls=[("get_order", {"order": 17})], tokens_in=50, tokens_out=9), Says("Order 17 is shipped.")]
LOOP = """
import json, os, urllib.request

def ask(messages):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

def work(prompt):
    messages = [{"role": "user", "content": prompt}]
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})

def answer(attempt):
    return work(attempt.prompt)
"""


trial_of_task = partial(trial_of, task=TASK, prices=PRICES)


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
async def trials(
    tmp_path: Path, suites: Path, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> dict[str, FinishedTrial]:
    """The finished trial of each kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "looping_agent.py").write_text(LOOP)
    program = tmp_path / "command.py"
    program.write_text(LOOP + "\nimport sys\nprint(work(sys.argv[1]))\n")
    endpoints = {"openai": Endpoint(base_url=upstream.openai_base_url)}
    specs = {
        "cli": parse_agent(f"cli:{sys.executable} {program} {{prompt}}"),
        "python": parse_agent("python:looping_agent:answer"),
        "openai": parse_agent("openai:m"),
    }
    finished = {}
    for kind, spec in specs.items():
        upstream.says(*SCRIPT)
        finished[kind] = await trial_of_task(spec.model_copy(update={"upstreams": endpoints}), suites=suites)
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    (recordings / f"{TASK.task_id}.json").write_text(finished["openai"].transcript.model_dump_json())
    finished["replay"] = await trial_of_task(parse_agent(f"replay:{recordings}"), suites=suites)
    finished["http"] = await over_http(suites, finished["openai"])
    return finished


async def over_http(suites: Path, like: FinishedTrial) -> FinishedTrial:
    """An endpoint that reports what it did."""
    call = like.transcript.tool_calls[0]
    reply = {
        "output": like.transcript.output,
        "calls": [{"tool": call.tool, "arguments": call.arguments, "result": call.result}],
        "usage": {"in": 150, "out": 29},
    }
    with agent_server.running_agent() as server:
        server.replies = [agent_server.Says(reply)]
        options = HttpOptions(tool_calls="calls", tokens_in="usage.in", tokens_out="usage.out", complete=True)
        spec = parse_agent(f"http:{server.url}").model_copy(update={"http": options})
        return await trial_of_task(spec, suites=suites)


async def test_they_have_one_shape_and_are_graded_alike(trials: dict[str, FinishedTrial]) -> None:
    assert set(trials) == {"cli", "python", "openai", "replay", "http"}
    assert {kind: one.trial.reason for kind, one in trials.items() if one.trial.status is not TrialStatus.PASSED} == {}
    grades = {kind: [(grade.type, grade.score) for grade in one.trial.grades] for kind, one in trials.items()}
    assert all(one == grades["cli"] for one in grades.values())
    assert {one.trial.metrics.tool_call_count for one in trials.values()} == {1}
    validator = Draft202012Validator(json.loads((REPOSITORY / "schema" / "transcript.schema.json").read_text()))
    for kind, one in trials.items():
        validator.validate(json.loads(one.transcript.model_dump_json()))
        calls = [(call.tool, call.arguments, call.result) for call in one.transcript.tool_calls]
        assert calls == [("get_order", {"order": 17}, "shipped")], kind
        assert one.transcript.output == "Order 17 is shipped."
        assert one.transcript.messages[0].content == "What is the state of order 17?"
    # What the model used is known of those that went through the meter.
    for kind in ("cli", "python", "openai"):
        metrics = trials[kind].trial.metrics
        assert (metrics.steps, metrics.tokens_in, metrics.tokens_out) == (2, 150, 29), kind
        assert metrics.cost == pytest.approx(150 * 10e-6 + 29 * 30e-6)
