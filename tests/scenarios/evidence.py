"""A gate with an agent that passes and fails as it is told, and what earlier runs of its main have shown."""

import json
import textwrap
from typing import Any

from tests import gates
from tests.gates import verdict_of
from tests.project import Project
from tests.scenarios import Scenario

GATES = gates.GATES.format(k=3, seconds=300, suites="golden") + "    admission: {passes: 2, of: 3}\n"
TASK = """
task_id: {name}
suite: golden
description: Say yes.
inputs: {{prompt: Say yes.}}
graders: [{{type: output_check, contains: ["yes"]}}]
tracked_metrics: [latency]
"""
AGENT = "python:agent:agent"
_CODE = """
    import json, pathlib

    def agent(attempt):
        script = json.loads((pathlib.Path(__file__).parent / "says.json").read_text())
        letters = script.get(attempt.task_id, "p")
        passes = letters[min(attempt.trial, len(letters) - 1)] == "p"
        return "yes" if passes else "no"
    """


def green_main(scenario: Scenario) -> None:
    """A gate whose main has a green run of one task; the branch `change` is checked out."""
    scenario.write("gates.yaml", GATES)
    scenario.write("suites/golden/a.yaml", TASK.format(name="a"))
    scenario.write("agent.py", textwrap.dedent(_CODE))
    says(scenario)
    scenario.write(".gitignore", ".passgate\n__pycache__\nsays.json\n")
    scenario.git("add", "-A")
    scenario.git("commit", "-q", "-m", "A gate")
    assert verdict_of_run(scenario)["decision"] == "PASS"
    scenario.git("checkout", "-q", "-b", "change")


def cleared_flake(scenario: Scenario) -> None:
    """The same, with a run on the branch in which one of three trials fails, and no confirming trial."""
    green_main(scenario)
    says(scenario, a="pfp" + "p" * 60)
    verdict_of_run(scenario)


def says(project: Project, **letters: str) -> None:
    """What the agent does in trial after trial: `p`asses or fails; the last letter stands for all later ones."""
    project.write("says.json", json.dumps(letters))


def verdict_of_run(project: Project) -> dict[str, Any]:
    """Run the gate; the verdict."""
    result = project.passgate("run", "ci_merge", "--agent", AGENT)
    assert result.returncode in {0, 1, 3}, result.stderr
    verdict = verdict_of(project)
    assert verdict["exit_code"] == result.returncode
    return verdict
