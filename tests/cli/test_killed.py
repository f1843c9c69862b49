"""`kill -9` of everything, again and again: a run repeats nothing that has finished, and loses nothing."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from tests.gates import gate_of
from tests.project import Project
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until

TASKS, K, KILLS, JOBS = 10, 30, 20, 4
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


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_that_is_killed_twenty_times_repeats_only_what_was_in_flight_and_loses_nothing(
    bare_project: Project,
) -> None:
    project = bare_project
    gate_of(project, k=K)
    for number in range(TASKS):
        project.write(f"suites/golden/t{number}.yaml", SAYS_YES.format(name=f"t{number}"))
    temporary = project.path / "temporary"
    temporary.mkdir()
    project.environment |= {"TMPDIR": str(temporary), "PASSGATE_ENGINE": "none"}
    moments = random.Random(11)
    with running_agent() as agent:
        agent.replies = [Says(pause=0.05)]
        project.write("agents.yaml", AGENTS.format(url=agent.url))
        begin = project.command("run", "ci_merge", "--agent", "counting", "--jobs", str(JOBS))
        carry_on = project.command("run", "ci_merge", "--resume", "last", "--jobs", str(JOBS))
        for kill in range(KILLS):
            before, asked_before = finished(project), len(agent.asked)
            killed(project, carry_on if kill else begin, agent, moments)
            asked = asked_of(agent, asked_before)
            assert before.isdisjoint(asked), "a finished trial was run again"
        assert len(finished(project)) < TASKS * K
        last = project.run(carry_on, timeout=1800)
    assert last.returncode == 0, last.stdout + last.stderr
    every = {(f"t{task}", trial) for task in range(TASKS) for trial in range(K)}
    assert finished(project) == every
    calls = asked_of(agent, 0)
    assert set(calls) == every
    assert calls.total() <= len(every) + KILLS * JOBS, "more was repeated than was in flight"
    rows = pd.read_parquet(project.path / ".passgate/history/trials")
    assert Counter(rows["status"]) == {"passed": len(every)}
    assert len(project.run_folders()) == 1
    assert list(temporary.glob("*/*")) == [], "what killed processes have left is swept"


def killed(project: Project, command: list[str], agent: AgentServer, moments: random.Random) -> None:
    """Start a command and kill it with all its processes at a random moment: from its first second, before any trial,
    to some trials later.
    """
    wanted = len(agent.asked) + moments.randrange(10)
    with (
        (project.path / "stderr.txt").open("w") as messages,
        project.started(command, stdout=subprocess.DEVNULL, stderr=messages) as process,
    ):
        wait_until(lambda: process.poll() is not None or has_plan(project))
        wait_until(lambda: process.poll() is not None or len(agent.asked) >= wanted)
        time.sleep(moments.random() * 0.2)
        ended_before = process.poll()
        kill_tree(process.pid)
    assert ended_before is None, (project.path / "stderr.txt").read_text()


def has_plan(project: Project) -> bool:
    return any(project.path.glob(".passgate/runs/*/plan.json"))


def kill_tree(process_id: int) -> None:
    """Kill a process and all that come from it, none of which gets to clean up."""
    try:
        children = [int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]
        os.kill(process_id, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in children:
        kill_tree(child)


def finished(project: Project) -> set[Key]:
    """The trials whose lines in the journal are whole."""
    lines = [
        line
        for journal in project.path.glob(".passgate/runs/*/journal.jsonl")
        for line in journal.read_bytes().split(b"\n")[:-1]
    ]
    keys = [(trial["task_id"], trial["trial"]) for trial in (json.loads(line)["trial"] for line in lines)]
    assert len(set(keys)) == len(keys), "a trial stands in the journal twice"
    return set(keys)


def asked_of(agent: AgentServer, start: int) -> Counter[Key]:
    """How often the agent was asked for each trial, from a call on."""
    return Counter((asked.body["task_id"], int(asked.body["trial"])) for asked in agent.asked[start:])
