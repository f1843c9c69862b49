"""`passgate burn-in` as its users see it."""

import json
import signal
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.builders import task_document
from tests.cli.commands import Here, exits, refused, told
from tests.gates import agent_file
from tests.processes import interrupted, marked_processes
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

GATES = """
version: 1
suites: {golden: {k: 3, metric: pass^k, max_steps: 5}}
gates:
  ci_merge:
    suites: [golden]
    blocks_on: [golden_regression, task_failed]
    regression: {mode: strict}
concurrency: {trials: 4}
"""
NOW_AND_THEN = """
    async def agent(attempt):
        with open("numbers", "ab", buffering=0) as file:
            file.write(b"x")
            return "no" if file.tell() % 7 == 0 else "yes"
    """
"""Every seventh trial fails, whichever process it is in."""
BURN_IN = ("burn-in", "ci_merge", "--runs")


@pytest.fixture
def gate(bare_project: Project) -> Project:
    """A strict gate of two tasks."""
    write_gate(bare_project)
    return bare_project


def write_gate(project: Project) -> None:
    project.write("gates.yaml", GATES)
    for name in ("a", "b"):
        project.write(f"suites/golden/{name}.yaml", json.dumps(task_document(task_id=name)))


def journals(project: Project) -> list[Path]:
    return list(project.path.glob(".passgate/burn-in/*/*.jsonl"))


def numbers(project: Project, *arguments: str) -> Any:
    return json.loads(told(project, *BURN_IN, "10", "--json", *arguments))


def test_measured_and_forecast_stand_beside_each_other(gate: Project) -> None:
    said = told(gate, *BURN_IN, "20", *agent_file(gate, NOW_AND_THEN))
    assert "20 runs: the first 10 made the baseline, 10 were judged" in said
    assert "measured  forecast" in said
    assert "95 % interval of the measured share of FAIL" in said
    assert not (gate.path / ".passgate" / "history").exists()
    assert not (gate.path / ".passgate" / "runs").exists()
    assert gate.git("status", "--porcelain", "--", ".passgate") == ""


def test_programs_get_every_number(gate: Project) -> None:
    found = numbers(gate, *agent_file(gate, NOW_AND_THEN))
    assert (found["asked"], found["first"], found["judged"], found["why_ended"]) == (10, 5, 5, "")
    assert found["forecast"]["rates"] == "burn-in"
    # Which task has the failures depends on the order of the processes; how many there are does not.
    assert 0.8 < fmean(task["pass_rate"] for task in found["forecast"]["tasks"]) < 0.9
    assert len(list((gate.path / found["folder"]).glob("*.jsonl"))) == 10


def test_what_cannot_be_run_is_2_and_nothing_runs(here: Here) -> None:
    write_gate(here)
    missing = "cli:no-such-agent-anywhere {prompt}"
    assert "no-such-agent-anywhere" in refused(here, "burn-in", "ci_merge", "--agent", missing)
    here.write("gates.yaml", "version: 2\n")
    assert "gates.yaml:1:10" in refused(here, "burn-in", "ci_merge", "--agent", "nop")
    assert not (here.path / ".passgate").exists()


def test_a_cost_cap_ends_it_with_what_was_measured(metered: Project, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("yes"))  # For 1 cent a trial
    found = numbers(metered, "--agent", "openai:m", "--jobs", "1", "--max-cost", "0.155")
    assert found["why_ended"] == "the cost cap of $0.155 is spent"
    assert (found["first"], found["judged"]) == (5, 2)
    assert found["cost"] == pytest.approx(0.02)
    assert 0.14 <= found["spent"] <= 0.155


@pytest.mark.parametrize(
    ("agent", "cap", "address", "messages"),
    [
        ("openai:m", "0.015", "", ("--max-cost 0.015 left no money for a single run; the trials are in ",)),
        ("nop", "0", "", ("passgate: --max-cost 0 left no money for a single run\n",)),
        ("openai:m", "1", "http://127.0.0.1:9/v1", ("http://127.0.0.1:9/v1 cannot be reached", "so no trial ran")),
    ],
    ids=["too little", "none", "no provider"],
)
def test_without_a_whole_run_it_is_3_with_the_reason(
    metered: Project, upstream: ScriptedUpstream, agent: str, cap: str, address: str, messages: tuple[str, ...]
) -> None:
    upstream.says(Says("yes"))
    metered.environment["OPENAI_BASE_URL"] = address or upstream.openai_base_url
    result = exits(metered, 3, *BURN_IN, "4", "--agent", agent, "--jobs", "1", "--max-cost", cap)
    assert result.stdout == ""
    assert all(message in result.stderr for message in messages), result.stderr
    assert bool(journals(metered)) == ("the trials are in" in result.stderr)


def test_an_unknown_price_is_found_before_anything_is_paid(metered: Project, upstream: ScriptedUpstream) -> None:
    said = refused(metered, "burn-in", "ci_merge", "--agent", "openai:unknown", "--max-cost", "1")
    assert "the price of the model 'unknown' is unknown" in said
    assert upstream.count == 0


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_is_reported_when_it_is_interrupted(gate: Project, kind: signal.Signals) -> None:
    mark = str(time.time_ns())
    gate.write("agent.sh", f"sleep 0.1{mark}; printf yes")
    command = gate.command(*BURN_IN, "40", "--json", "--agent", f"cli:sh {gate.path}/agent.sh", "--jobs", "4")
    ended = interrupted(gate, command, kind, lambda: len(journals(gate)) > 24)
    assert ended.returncode == 130, ended.stderr
    found = json.loads(ended.stdout)
    assert found["why_ended"] == "interrupted: the finished runs were judged"
    assert found["first"] == 20
    assert 1 <= found["judged"] < 20
    wait_until(lambda: marked_processes(mark) == [])


def test_an_interrupt_before_a_run_was_judged_says_how_many_had_begun(gate: Project) -> None:
    mark = str(time.time_ns())
    gate.write("agent.sh", f"sleep 60{mark}")
    command = gate.command(*BURN_IN, "9", "--agent", f"cli:sh {gate.path}/agent.sh", "--jobs", "2")
    ended = interrupted(gate, command, signal.SIGTERM, lambda: len(marked_processes(mark)) > 0)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert "interrupted before a run was judged: 1 of 9 runs had begun" in ended.stderr
