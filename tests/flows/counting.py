"""A gate whose agent is a server that counts what it is asked for, and runs of it that tests disturb."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.flows.prefect_api import kill_tree
from tests.project import Project
from tests.unit.agents.agent_server import AgentServer
from tests.waiting import wait_until

GATES = """
version: 1
suites:
  golden: {k: %d, metric: pass^k, max_steps: 20}
gates:
  ci_merge: {suites: [golden], blocks_on: [golden_regression, task_failed], regression: {mode: strict}}
concurrency: {trials: %d}
"""
SAYS_YES = """
task_id: {name}
suite: golden
description: Say yes.
inputs: {{prompt: Say yes.}}
graders: [{{type: output_check, contains: ["yes"]}}]
tracked_metrics: [latency]
"""
AGENTS = """
agents:
  counting:
    agent: http:{url}
    http: {{request: {{task_id: "{{{{ task_id }}}}", trial: "{{{{ trial }}}}"}}, output: output}}
"""
Key = tuple[str, int]


def write_counting(
    project: Project, agent: AgentServer, *, tasks: int, k: int, jobs: int, fails: str = "", limit: str = ""
) -> None:
    """Write a gate whose agent passes every task but one that `fails`, within a concurrency `limit` of Prefect."""
    project.write("gates.yaml", GATES % (k, jobs))
    for name in (f"t{number}" for number in range(tasks)):
        text = SAYS_YES.format(name=name)
        project.write(f"suites/golden/{name}.yaml", text.replace('"yes"', '"no"') if name == fails else text)
    project.write("agents.yaml", AGENTS.format(url=agent.url) + (f"    concurrency_limit: {limit}\n" if limit else ""))


@contextmanager
def begun(
    project: Project, *options: str, agent: str = "counting", command: Sequence[str] = (), **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    """A run of the gate, which is killed with all that it has started at the end of the context."""
    command = [*(command or project.command()), "run", "ci_merge", "--agent", agent, *options]
    environment = project.full_environment(**environment)
    with (
        (project.path / "said.txt").open("w") as messages,
        project.started(command, env=environment, stdout=messages, stderr=messages) as process,
    ):
        try:
            yield process
        finally:
            kill_tree(process.pid)
            print(said(project))  # shown where a test fails


def said(project: Project) -> str:
    """What the newest run of the gate has printed."""
    return (project.path / "said.txt").read_text()


def trials(project: Project) -> list[dict[str, Any]]:
    """The trials whose lines in the parts of the journal are whole."""
    parts = sorted(project.path.glob(".passgate/runs/*/journal*.jsonl"))
    return [json.loads(line)["trial"] for part in parts for line in part.read_bytes().split(b"\n")[:-1]]


def finished(project: Project) -> set[Key]:
    return {(one["task_id"], one["trial"]) for one in trials(project)}


def wait_for_trials(project: Project, run: "subprocess.Popen[str]", count: int) -> None:
    """Wait until so many trials of a run have ended."""
    wait_until(lambda: run.poll() is not None or len(finished(project)) >= count)


def asked(agent: AgentServer, start: int = 0) -> Counter[Key]:
    """How often the agent was asked for each trial, from a call on."""
    return Counter((one.body["task_id"], int(one.body["trial"])) for one in list(agent.asked)[start:])
