"""The order of a run's trials, and those that it leaves out."""

import textwrap
from typing import Any

import pandas as pd
import pytest

from tests.gates import verdict_of
from tests.project import Project

GATES = """
version: 1
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20}
  adversarial: {k: 10, metric: pass^k, max_steps: 8}
gates:
  ci_merge:
    suites: [golden, adversarial]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]
    regression: {mode: strict}
    curtailment: true
"""
TASK = """
task_id: {name}
suite: {suite}
description: Say yes.
inputs: {{prompt: Say yes.}}
graders: [{{type: output_check, contains: ["yes"]}}]
tracked_metrics: [latency]
"""
AGENT = """
import pathlib

WRONG = {wrong}

def agent(attempt):
    with (pathlib.Path(__file__).parent / "calls.log").open("a") as log:
        log.write(f"{{attempt.task_id}} {{attempt.trial}}\\n")
    return "no" if (attempt.task_id, attempt.trial) in WRONG else "yes"
"""


@pytest.fixture
def repository(bare_project: Project) -> Project:
    """Two golden tasks and an adversarial one, and an agent that passes all of them."""
    bare_project.environment = {"PASSGATE_ENGINE": "none"}
    bare_project.write("gates.yaml", GATES)
    for name, suite in (("a", "golden"), ("b", "golden"), ("safe", "adversarial")):
        bare_project.write(f"suites/{suite}/{name}.yaml", TASK.format(name=name, suite=suite))
    fails(bare_project)
    return bare_project


def fails(project: Project, *trials: tuple[str, int]) -> None:
    """From now on the agent fails these trials."""
    project.write("agent.py", textwrap.dedent(AGENT.format(wrong=set(trials) or "()")))


def run(project: Project, *arguments: str, jobs: str = "1") -> tuple[dict[str, Any], list[str]]:
    """The verdict and what the agent was asked, in this order."""
    log = project.path / "calls.log"
    log.unlink(missing_ok=True)
    result = project.passgate("run", "ci_merge", "--agent", "python:agent:agent", "--jobs", jobs, *arguments)
    assert result.returncode in {0, 1, 3}, result.stdout + result.stderr
    return verdict_of(project), log.read_text().splitlines()


def of(verdict: dict[str, Any], name: str) -> dict[str, Any]:
    task: dict[str, Any]
    (task,) = [task for task in verdict["measurement"]["tasks"] if task["task_id"] == name]
    return task


def test_safety_first_then_the_first_trial_of_each_task(repository: Project) -> None:
    _, calls = run(repository)
    assert calls == [*(f"safe {trial}" for trial in range(10)), "a 0", "b 0", "a 1", "b 1", "a 2", "b 2"]


def test_what_cannot_change_the_verdict_is_left_out_and_said_to_be(repository: Project) -> None:
    fails(repository, ("safe", 2), ("b", 0))
    verdict, calls = run(repository)
    assert calls == ["safe 0", "safe 1", "safe 2", "a 0", "b 0", "a 1", "a 2"]
    assert verdict["decision"] == "FAIL"
    assert {reason["task_id"] for reason in verdict["reasons"]} == {"safe", "b"}
    safe = of(verdict, "safe")
    assert (safe["passed"], safe["failed"], safe["not_run"], safe["errors"]) == (2, 1, 7, 0)
    assert (safe["stopped_early"], safe["pass_hat_k"], safe["pass_rate"]) == (True, 0.0, None)
    suites = {suite["suite"]: suite for suite in verdict["measurement"]["suites"]}
    assert (suites["adversarial"]["trials_error"], suites["adversarial"]["trials_not_run"]) == (0, 7)
    assert suites["golden"]["value"] == 0.5
    rows = pd.read_parquet(repository.path / ".passgate" / "history" / "trials")
    left_out = rows[rows["status"] == "not_run"]
    assert len(left_out) == 9
    assert set(left_out["reason"]) == {"not run: the verdict is already decided without this trial"}


def test_what_was_red_lately_goes_before_the_rest_and_the_decided_are_not_run_again(repository: Project) -> None:
    repository.write(".gitignore", ".passgate\n__pycache__\ncalls.log\nagent.py\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "A gate")
    fails(repository, ("b", 0))
    run(repository)
    fails(repository)
    _, calls = run(repository)
    assert calls[10:] == ["b 0", "b 1", "b 2", "a 0", "a 1", "a 2"]


def test_without_early_stop_every_trial_is_run(repository: Project) -> None:
    repository.write("gates.yaml", GATES.replace("curtailment: true", "curtailment: false"))
    fails(repository, ("a", 0), ("safe", 0))
    verdict, calls = run(repository, jobs="4")
    assert len(calls) == 16
    assert not of(verdict, "a")["stopped_early"]
