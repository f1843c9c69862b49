"""A change that edits what it is judged by."""

from tests import gates
from tests.project import Project
from tests.scenarios import Scenario

_LINES = gates.GATES.format(k=2, seconds=300, suites="golden").splitlines(keepends=True)
GATES = "".join(line for line in _LINES if "adversarial" not in line)
TASK = """
task_id: {name}
suite: golden
description: Write ok into {name}.txt.
inputs: {{prompt: Write ok into {name}.txt.}}
graders:
  - type: state_check
    expect: [{{file: {name}.txt, {expect}}}]
tracked_metrics: [latency]
"""
AGENT = "cli:sh {project}/agent.sh"


def gate_on_main(scenario: Scenario) -> None:
    """Two tasks and an agent that does both, on main; the branch `change` is checked out."""
    scenario.write("gates.yaml", GATES)
    for name in ("a", "b"):
        task(scenario, name)
    scenario.write("agent.sh", "printf ok > a.txt; printf ok > b.txt\n")
    commit(scenario, "The gate")
    scenario.git("checkout", "-q", "-b", "change")


def loosened_and_broken(scenario: Scenario) -> None:
    """A run of a change that loosens the grader of the task that its agent breaks."""
    gate_on_main(scenario)
    task(scenario, "a", 'matches: "."')
    scenario.write("agent.sh", "printf bad > a.txt; printf ok > b.txt\n")
    commit(scenario, "Loosen and break")
    scenario.keep("run", "run", "ci_merge", "--agent", AGENT, "--base", "main")


def task(project: Project, name: str, expect: str = "equals: ok") -> None:
    project.write(f"suites/golden/{name}.yaml", TASK.format(name=name, expect=expect))


def commit(project: Project, message: str) -> None:
    project.git("add", "--all")
    project.git("commit", "-q", "-m", message)
