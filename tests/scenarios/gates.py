"""Runs of small gates, and what they leave."""

from tests.gates import gate_of, shell_agent
from tests.project import REPOSITORY
from tests.scenarios import Scenario

HOSTILE_TASK = """
suite: golden
task_id: {name}
description: Writes a file.
inputs: {{prompt: "Write a.txt."}}
graders: [{{type: contains, value: "\\x1b[2Jdone"}}]
tracked_metrics: [steps]
"""
SAYS_YES = """
suite: golden
task_id: first
description: Says yes.
inputs: {prompt: "Say yes."}
graders: [{type: contains, value: "yes"}]
tracked_metrics: [steps]
reference: {solution: {transcript: _shared/yes.json}}
"""


def a_red_run(scenario: Scenario) -> None:
    """A run of GitHub in which both trials of both tasks have failed."""
    gate_of(scenario, k=2)
    for name in ("first", "second"):
        scenario.write(f"suites/golden/{name}.yaml", HOSTILE_TASK.format(name=name))
    summary = scenario.write("summary.md", "")
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    scenario.keep("run", "run", "ci_merge", "--agent", "nop", **github)


def two_runs_of_a_part(scenario: Scenario) -> None:
    """A nightly gate of which most suites are missing, run twice."""
    scenario.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    scenario.write("suites/golden/first.yaml", SAYS_YES)
    scenario.write(
        "suites/_shared/yes.json", '{"messages": [{"role": "assistant", "content": "yes"}], "output": "yes"}'
    )
    scenario.git("add", "-A")
    scenario.git("commit", "-q", "-m", "Add a task")
    scenario.keep("quiet", "run", "nightly", "--quiet")
    scenario.keep("json", "run", "nightly", "--json", GITHUB_ACTIONS="true")


def a_green_run(scenario: Scenario) -> None:
    """A run on main in which both trials of a task have passed."""
    gate_of(scenario, "a", k=2)
    scenario.keep("run", "run", "ci_merge", *shell_agent(scenario))


def a_regression(scenario: Scenario) -> None:
    """The same, and a run on a branch in which the agent fails."""
    a_green_run(scenario)
    scenario.git("checkout", "-q", "-b", "change")
    scenario.keep("change", "run", "ci_merge", *shell_agent(scenario, "printf bad > result.txt"))
