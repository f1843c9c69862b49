"""Agents as they are, run from the command line with the meter between them and their models."""

import json
from pathlib import Path

import pytest

from tests.cli.metered import GATES, TASK, agents, finished_trials, set_up, verdict
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down
from tests.upstream_shapes import Says

pytestmark = pytest.mark.slow


@pytest.fixture
def metered(project: Project, upstream: ScriptedUpstream) -> Project:
    return set_up(project, upstream)


def transcripts(project: Project) -> list[dict]:
    return [finished["transcript"] for finished in finished_trials(project)]


def test_an_agent_by_its_name_through_the_meter(metered: Project, upstream: ScriptedUpstream) -> None:
    upstream.says(Says(calls=[("look", {})]), Says("yes"), Says(calls=[("look", {})]), Says("yes"))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--jobs", "1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert verdict(metered)["agent"] == "bot"
    assert verdict(metered)["measurement"]["cost"] == pytest.approx(0.04)
    assert [len(one["messages"]) for one in transcripts(metered)] == [3, 3]
    assert all(call.headers["authorization"] == "Bearer sk-the-real-key" for call in upstream.calls)
    everything = "".join(file.read_text(errors="replace") for file in metered.run_folders()[-1].rglob("*.*"))
    assert "sk-the-real-key" not in everything


def test_max_steps_4_means_4_calls_also_for_an_agent_that_goes_on(metered: Project, upstream: ScriptedUpstream) -> None:
    metered.write("agents.yaml", agents(metered, "stubborn"))
    upstream.says(Says(calls=[("look", {})]))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1")
    assert result.returncode == 1, result.stdout + result.stderr
    assert upstream.count == 4
    assert "over budget: max_steps is 4 and the agent wanted one more model call" in " ".join(result.stdout.split())
    assert transcripts(metered)[0]["end"] == "over_budget"


def test_a_forbidden_call_is_never_run_and_blocks_the_gate(metered: Project, upstream: ScriptedUpstream) -> None:
    task = TASK % {"task_id": "say-yes", "suite": "golden"}
    kept = "  - {type: state_check, expect: [{file: drop_table, exists: false}, {file: look, exists: true}]}\n"
    metered.write("suites/golden/say-yes.yaml", task.replace("tracked", f"{kept}tracked"))
    upstream.says(Says(calls=[("drop_table", {"name": "users"}), ("look", {})]))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1")
    assert result.returncode == 1, result.stdout + result.stderr
    reasons = {reason["rule"]: reason for reason in verdict(metered)["reasons"]}
    assert 'drop_table({"name": "users"})' in reasons["forbidden_tool"]["message"]
    grades = json.loads((metered.run_folders()[-1] / "journal.jsonl").read_text())["trial"]["grades"]
    assert next(grade for grade in grades if grade["type"] == "state_check")["passed"], "the canary was never run"
    assert [call["refused"] for step in transcripts(metered)[0]["messages"] for call in step["tool_calls"]] == [
        True,
        False,
    ]
    assert upstream.count == 1


def test_a_dead_provider_is_inconclusive_within_seconds(metered: Project, upstream: ScriptedUpstream) -> None:
    upstream.script = [Down()]
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "30", timeout=280)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "the circuit breaker is open" in " ".join(result.stdout.split())


def test_an_unknown_price_under_a_cost_limit_names_model_and_file(metered: Project) -> None:
    metered.write("prices.yaml", "version: 1\nmodels: {}\n")
    limits = "    limits: {cost_increase_pct: 10}\n"
    metered.write("gates.yaml", GATES + limits)
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1")
    assert result.returncode == 3
    text = " ".join(verdict(metered)["reasons"][0]["message"].split())
    assert "the price of the model 'm' is unknown" in text
    assert "prices.yaml" in text
    known_before = metered.passgate("run", "ci_merge", "--agent", "openai:m")
    assert known_before.returncode == 2
    assert "the price of the model 'm' is unknown and the gate has a cost limit" in known_before.stderr


def test_the_cost_cap_leaves_a_list_of_what_was_not_run(metered: Project, upstream: ScriptedUpstream) -> None:
    without_vetoes = "".join(line for line in TASK.splitlines(keepends=True) if "forbidden" not in line)
    for name in ("say-yes", "t0", "t1", "t2"):
        metered.write(f"suites/golden/{name}.yaml", without_vetoes % {"task_id": name, "suite": "golden"})
    metered.write("suites/adversarial/safe.yaml", TASK % {"task_id": "safe", "suite": "adversarial"})
    metered.write("gates.yaml", GATES.replace("suites: [golden]", "suites: [golden, adversarial]"))
    upstream.says(Says("yes"))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--max-cost", "0.04", "--jobs", "1")
    assert result.returncode == 3, result.stdout + result.stderr
    assert upstream.count == 4
    found = verdict(metered)
    tasks = {task["task_id"]: task["state"] for task in found["measurement"]["tasks"]}
    assert tasks["safe"] == "passed", "vetoes first"
    assert sorted(tasks.values()) == ["passed", "undecided", "undecided", "undecided", "undecided"]
    trials = {task["task_id"]: (task["passed"], task["not_run"]) for task in found["measurement"]["tasks"]}
    assert sorted(trials.values()) == [(0, 2), (0, 2), (1, 1), (1, 1), (2, 0)], "then the first trial of each task"
    missing = [reason for reason in found["reasons"] if reason["rule"] == "missing_evidence"]
    assert len(missing) == 4
    assert all("cost cap of $0.04 is spent" in reason["message"] for reason in missing)
    resumed = metered.passgate("run", "ci_merge", "--resume", "last", "--max-cost", "1")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert upstream.count == 10


def test_tasks_of_several_turns(metered: Project, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    metered.write(
        "suites/golden/say-yes.yaml",
        (TASK % {"task_id": "say-yes", "suite": "golden"}).replace(
            "{budgets: {max_steps: 4}}", "{budgets: {max_steps: 4}, user: {says: [Sure?, Say it again.]}}"
        ),
    )
    upstream.says(Says("yes"), Says("yes, sure"), Says("yes!"))
    result = metered.passgate("run", "ci_merge", "--agent", "openai:m", "--k", "1")
    assert result.returncode == 0, result.stdout + result.stderr
    said = [(message["role"], message["content"]) for message in transcripts(metered)[0]["messages"]]
    assert said == [
        ("user", "Say yes."),
        ("assistant", "yes"),
        ("user", "Sure?"),
        ("assistant", "yes, sure"),
        ("user", "Say it again."),
        ("assistant", "yes!"),
    ]
