"""The presets of agents, from npm as their owners run them, with a scripted provider and the tools of a task."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from passgate.tasks.agents.presets import presets
from passgate.tasks.commands.doctor import examine
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.model.agent import AgentSpec, Endpoint
from passgate.tasks.model.checks import State
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.builders import SHIPPED, a_task
from tests.flows.coding_agents import installed_commands
from tests.flows.recorded_models import play, read_reference
from tests.flows.trials import trial_of
from tests.project import REPOSITORY, Project
from tests.upstream import Says, ScriptedUpstream

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")]

SUITES = REPOSITORY / "suites"
INCIDENT = "incident-2026-05-06_second-refund_1"
ANSWER = "Your bank has had it since 4 May, under the number R-2207.\n\nREFUND: paid before"
PREFIXES = {
    "claude-code": "mcp__passgate__",
    "codex": "mcp__passgate__",
    "copilot": "passgate-",
    "gemini-cli": "mcp_passgate_",
    "opencode": "passgate_",
    "qwen-code": "mcp__passgate__",
}
"""What each puts before the name of a tool."""
FIXED_MODEL = {"copilot", "gemini-cli", "opencode", "qwen-code"}
"""What asks for a model that the preset names."""
TOOL = {
    "name": "book",
    "description": "Books a room.",
    "parameters": {"type": "object", "properties": {"room": {"type": "integer"}}, "required": ["room"]},
    "command": 'echo "$PASSGATE_TOOL_ARGUMENTS" >> booked.txt; echo done',
}
BOOKED = {"type": "state_check", "expect": [{"file": "booked.txt", "contains": ['{"room": 7}']}]}
each_preset = pytest.mark.parametrize("name", presets())


@pytest.fixture(autouse=True)
def _commands_are_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{installed_commands()}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


def asks(name: str, tool: str, **arguments: Any) -> Says:
    return Says(calls=[(f"{PREFIXES[name]}{tool}", arguments)])


def try_preset(
    name: str, task: EvalTask, upstream: ScriptedUpstream, suites: Path, codex_model: str = "--model gpt-5 "
) -> FinishedTrial:
    """One trial. Codex has another way to call tools with newer models."""
    preset = presets()[name].spec(name)
    spec: AgentSpec = preset.model_copy(
        update={
            "target": preset.target.replace("codex exec ", f"codex exec {codex_model}"),
            "upstreams": {
                "openai": Endpoint(base_url=upstream.openai_base_url),
                "anthropic": Endpoint(base_url=upstream.anthropic_base_url),
                "gemini": Endpoint(base_url=upstream.url),
            },
        }
    )
    return asyncio.run(trial_of(spec, task, suites))


def incident() -> EvalTask:
    (task,) = load_paths([SUITES / "failure_replays" / f"{INCIDENT}.yaml"], SHIPPED).tasks
    return task.model_copy(update={"budgets": Budgets(max_steps=6, max_seconds=200)})


@each_preset
def test_an_incident_is_replayed_to_the_agent_that_has_learnt(name: str, upstream: ScriptedUpstream) -> None:
    upstream.says(
        asks(name, "get_order", order=8841), asks(name, "get_refund", refund="R-2207"), Says(ANSWER), Says(ANSWER)
    )
    finished = try_preset(name, incident(), upstream, SUITES)
    assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
    tools = [(call.tool, call.result) for call in finished.transcript.tool_calls]
    assert tools[1] == ("get_refund", {"refund": "R-2207", "order": 8841, "euros": 64.0, "sent": "4 May"})
    assert len(tools) == 2


@each_preset
def test_an_agent_that_repeats_the_incident_fails_before_it_pays(name: str, upstream: ScriptedUpstream) -> None:
    upstream.says(asks(name, "get_order", order=8841), asks(name, "refund_order", order=8841), Says("REFUND: paid now"))
    finished = try_preset(name, incident(), upstream, SUITES)
    assert finished.trial.status is TrialStatus.FAILED
    assert finished.transcript.end is EndReason.FORBIDDEN_CALL
    calls = [(call.tool, call.refused) for call in finished.transcript.tool_calls]
    assert calls == [("get_order", False), ("refund_order", True)]
    assert "the forbidden tool call refund_order" in finished.trial.reason


GATES = """
suites:
  failure_replays: {k: 1, metric: pass^k, max_steps: 10, budgets: {max_seconds: 200}}
gates:
  release_candidate: {suites: [failure_replays], blocks_on: [task_failed, forbidden_tool]}
"""


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("repeats", [False, True], ids=["behaves", "repeats the incident"])
def test_a_run_of_the_shipped_incidents_has_the_verdict(
    name: str, repeats: bool, upstream: ScriptedUpstream, bare_project: Project
) -> None:
    shutil.copytree(SUITES / "failure_replays", bare_project.path / "suites" / "failure_replays")
    shutil.copytree(SUITES / "_shared", bare_project.path / "suites" / "_shared")
    bare_project.write("gates.yaml", GATES)
    entry = presets()[name].entry(name).replace("codex exec ", "codex exec --model gpt-5 ")
    bare_project.write("agents.yaml", f"agents:\n{indent(entry, '  ')}")
    bare_project.environment |= {
        "OPENAI_BASE_URL": upstream.openai_base_url,
        "ANTHROPIC_BASE_URL": upstream.anthropic_base_url,
        "OPENAI_API_KEY": "sk-of-openai",
        "ANTHROPIC_API_KEY": "sk-of-anthropic",
        "PATH": os.environ["PATH"],
        "PASSGATE_ENGINE": "none",
    }
    tasks = load_paths([SUITES / "failure_replays"], SHIPPED).tasks
    transcripts = {task.inputs["prompt"]: read_reference(task, is_solution=not repeats) for task in tasks}
    upstream.script = play(transcripts, PREFIXES[name])
    ran = bare_project.passgate("run", "release_candidate", "--agent", name, "--k", "1")
    assert ran.returncode == int(repeats), ran.stdout + ran.stderr
    assert f"release_candidate {'FAIL' if repeats else 'PASS'}" in ran.stdout
    (run,) = bare_project.run_folders()
    trials = [json.loads(line)["trial"] for line in (run / "journal.jsonl").read_text().splitlines()]
    status = "failed" if repeats else "passed"
    assert {trial["task_id"]: trial["status"] for trial in trials} == {task.task_id: status for task in tasks}


@each_preset
def test_a_call_that_was_not_recorded_fails(name: str, upstream: ScriptedUpstream) -> None:
    upstream.says(asks(name, "get_order", order=8842), Says("REFUND: paid before"))
    finished = try_preset(name, incident(), upstream, SUITES)
    assert finished.trial.status is TrialStatus.FAILED
    assert finished.transcript.end is EndReason.REPLAY_MISMATCH
    assert "call 1 differs (strict)" in finished.trial.reason


@each_preset
def test_budgets_hold_exactly(name: str, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.says(asks(name, "book", room=7))
    task = a_task(tools=[TOOL], graders=[BOOKED], budgets=Budgets(max_tool_calls=2, max_steps=9, max_seconds=200))
    finished = try_preset(name, task, upstream, tmp_path)
    assert "over budget: max_tool_calls is 2" in finished.trial.reason
    assert [call.refused for call in finished.transcript.tool_calls] == [False, False, True]
    assert upstream.count == 3
    upstream.says(asks(name, "book", room=7))
    before = upstream.count
    task = a_task(tools=[TOOL], graders=[BOOKED], budgets=Budgets(max_steps=3, max_seconds=200))
    finished = try_preset(name, task, upstream, tmp_path)
    assert "over budget: max_steps is 3" in finished.trial.reason
    assert upstream.count - before == 3


@each_preset
def test_a_forbidden_tool_is_never_run(name: str, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.says(asks(name, "book", room=7), asks(name, "book", room=13), Says("Done."))
    forbidden = {"type": "tool_calls", "forbidden": [{"tool": "book", "params": {"room": 13}}]}
    never = {"type": "state_check", "expect": [{"file": "booked.txt", "equals": '{"room": 7}\n'}]}
    task = a_task(tools=[TOOL], graders=[forbidden, never], budgets=Budgets(max_steps=9, max_seconds=200))
    finished = try_preset(name, task, upstream, tmp_path)
    assert [grade.passed for grade in finished.trial.grades] == [False, True]
    assert [call.refused for call in finished.transcript.tool_calls] == [False, True]


@each_preset
def test_a_task_without_tools_runs_too(name: str, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.says(Says("yes"))
    prompt = '- Say yes; it\'s "urgent" $HOME\n--help'
    task = a_task(inputs={"prompt": prompt}, budgets=Budgets(max_steps=3, max_seconds=200))
    finished = try_preset(name, task, upstream, tmp_path)
    assert (finished.trial.status, finished.trial.reason) == (TrialStatus.PASSED, "")
    assert upstream.count == 1
    lines = [line for message in finished.transcript.messages for line in message.content.split("\n")]
    assert lines.index("--help") == lines.index(prompt.split("\n")[0]) + 1
    (call,) = upstream.calls
    model = call.body.get("model") or call.path.rpartition("/")[2].partition(":")[0]
    assert (model in presets()[name].entry(name)) is (name in FIXED_MODEL)
    assert name != "copilot" or "github" not in json.dumps(call.body["tools"])


def test_newer_models_of_codex_call_tools_from_code(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.says(Says("yes"))
    for model, is_direct in (("", False), ("--model gpt-5 ", True)):
        try_preset("codex", a_task(tools=[TOOL], budgets=Budgets(max_seconds=200)), upstream, tmp_path, model)
        assert ("mcp__passgate" in json.dumps(upstream.calls[-1].body.get("tools"))) is is_direct


@each_preset
def test_doctor_sees_that_it_starts_without_a_login(name: str) -> None:
    symptoms = asyncio.run(examine([name], Path("gates.yaml"), Path("suites")))
    found = {symptom.what: symptom for symptom in symptoms if symptom.subject == f"agent {name}"}
    assert "version" in found["cli"].found
    assert "version unknown" not in found["cli"].found
    assert (found["start"].state, found["start"].found) == (
        State.OK,
        f"{presets()[name].program} asks its model without a login",
    )
