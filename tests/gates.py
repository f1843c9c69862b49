"""A gate whose tasks want a file with `ok` in it, agents for it, and what its runs leave."""

import json
import textwrap
from pathlib import Path
from typing import Any

from tests.project import Project

GATES = """
version: 1
suites:
  golden: {{k: {k}, metric: pass^k, max_steps: 20, budgets: {{max_seconds: {seconds}}}}}
  adversarial: {{k: 10, metric: pass^k, max_steps: 8}}
baseline: {{young: block}}
gates:
  ci_merge:
    suites: [{suites}]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]
"""
WRITES_OK = """
task_id: {name}
suite: golden
description: Write ok into result.txt.
inputs: {{prompt: Write ok into result.txt.}}
graders:
  - type: state_check
    expect: [{{file: result.txt, equals: ok}}]
tracked_metrics: [latency]
"""
WRITE_OK = "printf ok > result.txt"


def gate_of(project: Project, *tasks: str, k: int = 3, seconds: float = 300, suites: str = "golden") -> None:
    """Write the policy, and golden tasks of these names."""
    project.write("gates.yaml", GATES.format(k=k, seconds=seconds, suites=suites))
    for name in tasks:
        project.write(f"suites/golden/{name}.yaml", WRITES_OK.format(name=name))


def agent_file(project: Project, code: str) -> tuple[str, str]:
    """Write a module with a function `agent`; the option that makes it the agent of a command."""
    project.write("agent.py", textwrap.dedent(code))
    return "--agent", "python:agent:agent"


def shell_agent(project: Project, script: str = WRITE_OK) -> tuple[str, str]:
    """Write a script of the shell; the option that makes it the agent of a command."""
    project.write("agent.sh", script)
    return "--agent", "cli:sh {project}/agent.sh"


def newest_run(project: Project) -> Path:
    """The folder of the run that began last."""
    return project.run_folders()[-1]


def verdict_of(project: Project) -> dict[str, Any]:
    """The verdict of the newest run."""
    return _read(newest_run(project) / "verdict.json")


def finished_trials(project: Project) -> list[dict[str, Any]]:
    """The lines of the newest run's journal: `trial` and `transcript`."""
    return [json.loads(line) for line in (newest_run(project) / "journal.jsonl").read_text().splitlines()]


def has_trials(project: Project, count: int = 1) -> bool:
    """Whether the journal of a run has as many whole lines."""
    journals = project.path.glob(".passgate/runs/*/journal.jsonl")
    return any(journal.read_bytes().count(b"\n") >= count for journal in journals)


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content
