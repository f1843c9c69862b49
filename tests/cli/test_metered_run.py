"""Agents as they are, run from the command line with the meter between them and their models."""

import signal
from typing import Any

import pytest

from tests.cli.commands import exits, refused
from tests.cli.metered import GATES, TASK, agents, run, server_complaints, write_task
from tests.gates import finished_trials, newest_run, verdict_of
from tests.processes import interrupted
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down, Silent, Slow, Status
from tests.upstream_shapes import Says

pytestmark = pytest.mark.slow

LOOKS = Says(calls=[("look", {})])


def transcripts(project: Project) -> list[dict[str, Any]]:
    return [finished["transcript"] for finished in finished_trials(project)]


def test_an_agent_by_its_name_through_the_meter(metered: Project, upstream: ScriptedUpstream) -> None:
    upstream.says(LOOKS, Says("yes"), LOOKS, Says("yes"))
    run(metered, 0, "--jobs", "1")
    verdict = verdict_of(metered)
    assert (verdict["agent"], verdict["measurement"]["cost"]) == ("bot", pytest.approx(0.04))
    assert [len(one["messages"]) for one in transcripts(metered)] == [3, 3]
    assert all(call.headers["authorization"] == "Bearer sk-the-real-key" for call in upstream.calls)
    everything = "".join(file.read_text(errors="replace") for file in newest_run(metered).rglob("*.*"))
    assert "sk-the-real-key" not in everything


def test_max_steps_4_means_4_calls_also_for_an_agent_that_goes_on(metered: Project, upstream: ScriptedUpstream) -> None:
    metered.write("agents.yaml", agents(metered, "stubborn"))
    upstream.says(LOOKS)
    said = run(metered, 1, "--k", "1").stdout
    assert upstream.count == 4
    assert "over budget: max_steps is 4 and the agent wanted one more model call" in " ".join(said.split())
    assert transcripts(metered)[0]["end"] == "over_budget"


def test_a_forbidden_call_is_never_run_and_blocks_the_gate(metered: Project, upstream: ScriptedUpstream) -> None:
    kept = "  - {type: state_check, expect: [{file: drop_table, exists: false}, {file: look, exists: true}]}\n"
    write_task(metered, "tracked", f"{kept}tracked")
    upstream.says(Says(calls=[("drop_table", {"name": "users"}), ("look", {})]))
    run(metered, 1, "--k", "1")
    reasons = {reason["rule"]: reason for reason in verdict_of(metered)["reasons"]}
    assert 'drop_table({"name": "users"})' in reasons["forbidden_tool"]["message"]
    [finished] = finished_trials(metered)
    grades = {grade["type"]: grade["passed"] for grade in finished["trial"]["grades"]}
    assert grades["state_check"], "the canary was never run"
    calls = [call for step in finished["transcript"]["messages"] for call in step["tool_calls"]]
    assert [call["refused"] for call in calls] == [True, False]
    assert upstream.count == 1


def test_a_dead_provider_is_inconclusive_within_seconds(metered: Project, upstream: ScriptedUpstream) -> None:
    upstream.script = [Down()]
    assert "the circuit breaker is open" in " ".join(run(metered, 3, "--k", "30").stdout.split())


def test_an_unknown_price_under_a_cost_limit_names_model_and_file(metered: Project, upstream: ScriptedUpstream) -> None:
    metered.write("prices.yaml", "version: 1\nmodels: {}\n")
    metered.write("gates.yaml", f"{GATES}    limits: {{cost_increase_pct: 10}}\n")
    run(metered, 3, "--k", "1")
    text = " ".join(verdict_of(metered)["reasons"][0]["message"].split())
    assert "the price of the model 'm' is unknown" in text
    assert "prices.yaml" in text
    known_before = "the price of the model 'm' is unknown and the gate has a cost limit"
    assert known_before in refused(metered, "run", "ci_merge", "--agent", "openai:m")
    said = " ".join(run(metered, 2, "--k", "5", "--jobs", "1").stderr.split())
    line = '"m": {input: DOLLARS, output: DOLLARS} (US dollars per million tokens)'
    assert f"{line}; the run stops after 3 such trials" in said
    found = " ".join(exits(metered, 2, "doctor", "bot", "--try").stdout.split())
    assert "the price of the model 'm' is unknown and there is a cost limit in ci_merge" in found
    assert upstream.count == 0


def test_the_cost_cap_leaves_a_list_of_what_was_not_run(metered: Project, upstream: ScriptedUpstream) -> None:
    without_vetoes = "".join(line for line in TASK.splitlines(keepends=True) if "forbidden" not in line)
    for name in ("say-yes", "t0", "t1", "t2"):
        metered.write(f"suites/golden/{name}.yaml", without_vetoes % {"task_id": name, "suite": "golden"})
    metered.write("suites/adversarial/safe.yaml", TASK % {"task_id": "safe", "suite": "adversarial"})
    metered.write("gates.yaml", GATES.replace("suites: [golden]", "suites: [golden, adversarial]"))
    upstream.says(Says("yes"))
    run(metered, 3, "--max-cost", "0.04", "--jobs", "1")
    assert upstream.count == 4
    found = verdict_of(metered)
    tasks = {task["task_id"]: task["state"] for task in found["measurement"]["tasks"]}
    assert tasks["safe"] == "passed", "vetoes first"
    assert sorted(tasks.values()) == ["passed", "undecided", "undecided", "undecided", "undecided"]
    trials = sorted((task["passed"], task["not_run"]) for task in found["measurement"]["tasks"])
    assert trials == [(0, 2), (0, 2), (1, 1), (1, 1), (2, 0)], "then the first trial of each task"
    missing = [reason["message"] for reason in found["reasons"] if reason["rule"] == "missing_evidence"]
    assert ["cost cap of $0.04 is spent" in message for message in missing] == [True] * 4
    run(metered, 0, "--resume", "last", "--max-cost", "1")
    assert upstream.count == 10


def test_an_error_after_paid_calls_keeps_its_transcript_and_its_cost(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    metered.write("gates.yaml", f"{GATES}error_retries: 0\n")
    upstream.says(LOOKS, LOOKS, Status(401))
    said = run(metered, 3, "--k", "1").stdout
    [finished] = finished_trials(metered)
    assert finished["trial"]["status"] == "error"
    assert [message["role"] for message in finished["transcript"]["messages"]] == ["user", "assistant", "assistant"]
    measurement = verdict_of(metered)["measurement"]
    costs = (finished["trial"]["metrics"]["cost"], measurement["cost"], measurement["suites"][0]["cost"])
    assert costs == pytest.approx((0.02, 0.02, 0.02))
    assert "$0.02" in said


def test_a_trial_that_the_cap_ended_is_paid_out_of_the_cap_of_the_run_that_goes_on(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    upstream.says(LOOKS)
    run(metered, 3, "--k", "1", "--max-cost", "0.025")
    [finished] = finished_trials(metered)
    assert (finished["trial"]["status"], len(finished["transcript"]["messages"])) == ("not_run", 3)
    assert verdict_of(metered)["measurement"]["cost"] == pytest.approx(0.02)
    upstream.says(Says("yes"))
    run(metered, 0, "--resume", "last", "--max-cost", "0.035")
    last = finished_trials(metered)[-1]["trial"]
    assert (last["status"], last["unmeasured_cost"]) == ("passed", pytest.approx(0.02))
    assert verdict_of(metered)["measurement"]["cost"] == pytest.approx(0.03)


PYTHON_AGENT = """
import json, urllib.request

def answer(attempt):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": attempt.prompt}]}).encode()
    address = attempt.variables["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""


def limited(project: Project, seconds: float) -> None:
    """Give the trial so long, and the Python agent its file."""
    project.write("calling.py", PYTHON_AGENT)
    project.write("gates.yaml", f"{GATES}error_retries: 0\n")
    write_task(project, "max_steps: 4", f"max_seconds: {seconds}")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_in_a_streamed_call_complains_of_nothing(
    metered: Project, upstream: ScriptedUpstream, kind: signal.Signals
) -> None:
    limited(metered, 600)
    metered.write("calling.py", PYTHON_AGENT.replace('"model": "m"', '"model": "m", "stream": True'))
    upstream.says(Slow(0.2, Says("word " * 3000)))
    command = metered.command("run", "ci_merge", "--agent", "python:calling:answer", "--k", "1")
    ended = interrupted(metered, command, kind, lambda: upstream.count > 0)
    assert ended.returncode == 130, ended.stderr
    assert server_complaints(ended.stderr) == []


@pytest.mark.parametrize("agent", ["bot", "openai:m", "python:calling:answer"])
def test_a_healthy_call_at_the_deadline_is_the_agents_time_out(
    metered: Project, upstream: ScriptedUpstream, agent: str
) -> None:
    limited(metered, 1.5)
    upstream.says(Silent(60, Says("yes")))
    assert server_complaints(run(metered, 1, "--k", "1", agent=agent).stderr) == []
    [finished] = finished_trials(metered)
    assert (finished["trial"]["status"], finished["transcript"]["end"]) == ("failed", "timed_out")
    assert "max_seconds is 1.5 and the agent was still running" in finished["trial"]["reason"]


def test_a_call_that_the_provider_keeps_declining_until_the_deadline_is_no_fault_of_the_agent(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    limited(metered, 15)  # Long enough for the agent to begin on a busy machine
    upstream.says(Status(429, {"retry-after": "50"}))
    run(metered, 3, "--k", "1")
    [finished] = finished_trials(metered)
    assert finished["trial"]["status"] == "error"
    assert "429" in finished["trial"]["reason"]
