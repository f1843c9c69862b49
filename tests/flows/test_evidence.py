"""A task that fails on a branch: held against the runs of main before it blocks."""

import json
import textwrap
from typing import Any

import pandas as pd
import pytest

from tests.project import Project

pytestmark = pytest.mark.slow

AGENT = "python:agent:agent"
PLAIN = ("--engine", "none")
GATES = """
version: 1
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20, budgets: {max_seconds: 30}}
gates:
  ci_merge:
    suites: [golden]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]
    admission: {passes: 2, of: 3}
"""
TASK = """
task_id: {name}
suite: golden
description: Say yes.
inputs: {{prompt: Say yes.}}
graders: [{{type: output_check, contains: ["yes"]}}]
tracked_metrics: [latency]
"""


@pytest.fixture
def repository(project: Project) -> Project:
    """A gate whose main has a green run of one task."""
    project.write("gates.yaml", GATES)
    project.write("suites/golden/a.yaml", TASK.format(name="a"))
    project.write(
        "agent.py",
        textwrap.dedent(
            """
            import json, pathlib

            def agent(attempt):
                script = json.loads((pathlib.Path(__file__).parent / "says.json").read_text())
                letters = script.get(attempt.task_id, "p")
                passes = letters[min(attempt.trial, len(letters) - 1)] == "p"
                return "yes" if passes else "no"
            """
        ),
    )
    says(project)
    project.write(".gitignore", ".passgate\n__pycache__\nsays.json\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "A gate")
    assert run(project)["decision"] == "PASS"
    project.git("checkout", "-q", "-b", "change")
    return project


def says(project: Project, **letters: str) -> None:
    """What the agent does in trial after trial: `p`asses or fails; the last letter stands for all later ones."""
    project.write("says.json", json.dumps(letters))


def run(project: Project, *arguments: str) -> dict[str, Any]:
    result = project.passgate("run", "ci_merge", "--agent", AGENT, *arguments)
    assert result.returncode in {0, 1, 3}, result.stderr
    verdict: dict[str, Any] = json.loads((project.run_folders()[-1] / "verdict.json").read_text())
    assert verdict["exit_code"] == result.returncode
    return verdict


def test_a_flake_is_cleared_by_confirming_trials_which_no_figure_counts(repository: Project) -> None:
    says(repository, a="pfp" + "p" * 60)
    verdict = run(repository)
    assert verdict["decision"] == "PASS", verdict["reasons"]
    (confirmation,) = verdict["confirmations"]
    assert confirmation["finding"] == "fits its baseline"
    assert (confirmation["baseline_passed"], confirmation["baseline_n"]) == (3, 3)
    assert confirmation["passed"] == confirmation["n"] - 1 == 2 + confirmation["confirming"]
    (task,) = verdict["measurement"]["tasks"]
    assert (task["passed"], task["failed"], task["value"] if "value" in task else task["pass_hat_k"]) == (2, 1, 0.0)
    assert task["confirming"] == [True] * confirmation["confirming"]
    rows = pd.read_parquet(repository.path / ".passgate/history/trials")
    newest = rows[rows["run_id"] == verdict["run_id"]]
    assert sorted(newest["trial"]) == list(range(3 + confirmation["confirming"]))
    assert newest[newest["confirming"]]["trial"].min() == 3


def test_a_fall_is_confirmed_and_blocks(repository: Project) -> None:
    says(repository, a="pff" + "f" * 60)
    verdict = run(repository)
    assert verdict["decision"] == "FAIL"
    (reason,) = [reason for reason in verdict["reasons"] if reason["blocking"]]
    assert reason["rule"] == "golden_regression"
    assert verdict["confirmations"][0]["finding"] in {"fallen", "undecided"}


def test_a_new_task_is_reported_without_blocking(repository: Project) -> None:
    repository.write("suites/golden/b.yaml", TASK.format(name="b"))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "A new task")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "change")
    says(repository, b="f")
    verdict = run(repository)
    assert verdict["decision"] == "PASS", verdict["reasons"]
    assert [withheld["task"] for withheld in verdict["not_admitted"]] == ["golden/b"]
    assert [reason["blocking"] for reason in verdict["reasons"] if reason["task_id"] == "b"] == [False]


def test_a_run_that_was_killed_in_its_confirming_trials_goes_on_with_them(repository: Project) -> None:
    says(repository, a="pfp" + "p" * 60)
    whole = run(repository)
    folder = repository.run_folders()[-1]
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(lines[:5]))
    again = repository.passgate("run", "ci_merge", "--resume", "last")
    assert again.returncode == 0, again.stdout + again.stderr
    resumed = json.loads((folder / "verdict.json").read_text())
    assert resumed["confirmations"] == whole["confirmations"]


def test_what_was_red_on_main_too_is_nobodys_fault(repository: Project) -> None:
    repository.git("checkout", "-q", "main")
    says(repository, a="f")
    for _ in range(3):
        run(repository)
    repository.git("checkout", "-q", "change")
    verdict = run(repository)
    (reason,) = [reason for reason in verdict["reasons"] if reason["task_id"] == "a"]
    assert reason["blocking"] is False
    assert "failed at the baseline too" in reason["message"]


def merged(project: Project, prompt: str, wanted: str) -> None:
    """Merge an edit of the task into main, and go on from there on a branch."""
    text = TASK.format(name="a").replace("Say yes.}", f"{prompt}}}").replace('"yes"', wanted)
    project.git("checkout", "-q", "main")
    project.write("suites/golden/a.yaml", text)
    project.git("commit", "-q", "-am", f"{prompt} {wanted}")
    project.git("checkout", "-q", "-B", "change")
    project.git("commit", "-q", "--allow-empty", "-m", "Break the agent")


def test_an_edited_task_is_guarded_by_its_runs_before_the_edit_unless_its_graders_are_others(
    repository: Project,
) -> None:
    repository.git("checkout", "-q", "main")
    repository.write("gates.yaml", GATES.replace("k: 3", "k: 10"))
    repository.write("suites/golden/b.yaml", TASK.format(name="b"))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "More trials")
    run(repository, *PLAIN)
    assert run(repository, *PLAIN)["decision"] == "PASS"
    merged(repository, "Please say yes.", '"yes"')
    says(repository, a="f")
    verdict = run(repository, *PLAIN)
    assert verdict["decision"] == "FAIL"
    (reason,) = [reason for reason in verdict["reasons"] if reason["blocking"]]
    assert "judged against its version before the edit (20 trials)" in reason["message"]
    assert [one["before_edit"] for one in verdict["confirmations"]] == [20]
    assert "golden/a is judged against its version before the edit, 20 trials" in verdict["notes"]
    shown = repository.passgate("baseline", "show", "--agent", AGENT).stdout
    assert "green, edited" in shown
    merged(repository, "Please say yes.", '"ye"')
    verdict = run(repository, *PLAIN)
    assert verdict["decision"] == "PASS", verdict["reasons"]
    assert [one["why"].rpartition("; ")[2] for one in verdict["not_admitted"]] == [
        "its graders, its k or its metric are not those of its earlier runs"
    ]
