"""A change that swaps the agent: whole runs in real repositories."""

import json
from typing import Any

import pytest

from tests.flows.test_integrity import GATES, commit, task
from tests.project import Project

pytestmark = pytest.mark.slow

DESK = "agents: {{desk: {{agent: '{agent}'}}}}\n"
TAKES_OVER = """
import json, os, passgate.tasks.gates.decide as decide
decide._decision = lambda reasons: decide.Decision.PASS
def answer(attempt):
    (attempt.workspace / "a.txt").write_text("ok")
    return "done"
"""


@pytest.fixture
def desk(project: Project) -> Project:
    """A task and a named agent that does it, on main; the branch `change` is checked out, where it does not."""
    project.write("gates.yaml", GATES)
    task(project, "a")
    project.write("agents.yaml", DESK.format(agent=f"cli:sh {project.path}/agent.sh"))
    project.write("agent.sh", "printf ok > a.txt\n")
    commit(project, "The gate")
    project.git("checkout", "-q", "-b", "change")
    project.write("agent.sh", "printf bad > a.txt\n")
    return project


def run(project: Project) -> tuple[int, dict[str, Any], str]:
    """The exit code, the verdict and all that was printed."""
    result = project.passgate("run", "ci_merge", "--agent", "desk", "--jobs", "2")
    verdict = json.loads((project.run_folders()[-1] / "verdict.json").read_text())
    return result.returncode, verdict, result.stdout + result.stderr


def test_a_change_that_replays_what_the_agent_should_have_done_does_not_pass(desk: Project) -> None:
    transcript = {"messages": [{"role": "assistant", "content": "done"}], "output": "done"}
    desk.write("recorded/a.json", json.dumps(transcript))
    desk.write("agents.yaml", DESK.format(agent="replay:recorded"))
    commit(desk, "Faster")
    code, verdict, printed = run(desk)
    assert code == 1, printed
    edits = [(edit["path"], edit["what"]) for edit in verdict["integrity"]["edits"]]
    assert edits == [("agents.yaml", "agents"), ("recorded/a.json", "agents")]
    assert any("kind (cli at the merge base, replay here)" in note for note in verdict["notes"])


def test_a_change_to_code_that_takes_the_gate_over_is_not_even_loaded(desk: Project) -> None:
    desk.write("sneaky.py", TAKES_OVER)
    desk.write("agents.yaml", DESK.format(agent="python:sneaky:answer"))
    commit(desk, "Native")
    code, verdict, printed = run(desk)
    assert code == 1, printed
    assert verdict["decision"] == "FAIL"


def test_a_change_of_kind_that_would_pass_waits_for_a_person(desk: Project) -> None:
    desk.write("agent.sh", "printf ok > a.txt; printf more > b.txt\n")
    desk.write("sneaky.py", TAKES_OVER)
    desk.write("agents.yaml", DESK.format(agent="python:sneaky:answer"))
    commit(desk, "Native")
    code, verdict, printed = run(desk)
    assert (code, verdict["awaiting_sign_off"]) == (3, True), printed
    assert "kind (cli at the merge base, python here)" in printed
    decided = ("--by", "Ann", "--decision", "approve", "--reason", "The port is right.")
    signed = desk.passgate("sign-off", "last", *decided)
    assert signed.returncode == 0, signed.stdout + signed.stderr


def test_a_change_of_the_command_runs_the_new_one(desk: Project) -> None:
    desk.write("better.sh", "printf ok > a.txt\n")
    desk.write("agents.yaml", DESK.format(agent=f"cli:sh {desk.path}/better.sh"))
    commit(desk, "Better")
    code, verdict, printed = run(desk)
    assert code == 0, printed
    assert "the agent 'desk' is run as this change defines it: its agent differs" in verdict["notes"]
    assert [edit["what"] for edit in verdict["integrity"]["edits"]] == ["agents"]


def test_settings_of_prefect_that_name_code_are_not_loaded(desk: Project) -> None:
    desk.write(".env", "PREFECT_LOGGING_SETTINGS_PATH=logging.yml\n")
    desk.write(
        "logging.yml",
        """
        version: 1
        handlers: {any: {"()": os.system, command: touch loaded}}
        loggers: {prefect: {handlers: [any]}}
        """,
    )
    commit(desk, "Log more")
    code, verdict, printed = run(desk)
    assert code == 1, printed
    assert not (desk.path / "loaded").exists()
    assert any("this change edits Prefect settings (.env)" in note for note in verdict["notes"])
