"""`passgate burn-in` as its users see it."""

import json
import signal
import time
from pathlib import Path
from statistics import fmean

import pytest

from tests.builders import task_document
from tests.cli.test_metered_run import GATES as METERED_GATES
from tests.cli.test_metered_run import TASK as METERED_TASK
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
    regression: {mode: %s}
concurrency: {trials: 4}
"""
NOW_AND_THEN = """
    async def agent(attempt):
        with open("numbers", "ab", buffering=0) as file:
            file.write(b"x")
            return "no" if file.tell() % 7 == 0 else "yes"
    """
"""Every seventh trial fails, whichever process it is in."""


@pytest.fixture
def gate(bare_project: Project) -> Project:
    """A strict gate of two tasks."""
    bare_project.write("gates.yaml", GATES % "strict")
    for name in ("a", "b"):
        bare_project.write(f"suites/golden/{name}.yaml", json.dumps(task_document(task_id=name)))
    return bare_project


def test_measured_and_forecast_stand_beside_each_other(gate: Project) -> None:
    agent_file(gate, NOW_AND_THEN)
    result = gate.passgate("burn-in", "ci_merge", "--runs", "20", "--agent", "python:agent:agent")
    assert result.returncode == 0, result.stderr
    assert "20 runs: the first 10 made the baseline, 10 were judged" in result.stdout
    assert "measured  forecast" in result.stdout
    assert "95 % interval of the measured share of FAIL" in result.stdout
    assert not (gate.path / ".passgate" / "history").exists()
    assert not (gate.path / ".passgate" / "runs").exists()
    assert gate.git("status", "--porcelain", "--", ".passgate") == ""


def test_programs_get_every_number(gate: Project) -> None:
    agent_file(gate, NOW_AND_THEN)
    result = gate.passgate("burn-in", "ci_merge", "--runs", "10", "--json", "--agent", "python:agent:agent")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["asked"], found["first"], found["judged"], found["why_ended"]) == (10, 5, 5, "")
    assert found["forecast"]["rates"] == "burn-in"
    # Which task has the failures depends on the order of the processes; how many there are does not.
    assert 0.8 < fmean(task["pass_rate"] for task in found["forecast"]["tasks"]) < 0.9
    assert len(list((gate.path / found["folder"]).glob("*.jsonl"))) == 10


def test_a_broken_gates_file_is_2_and_nothing_runs(gate: Project) -> None:
    gate.write("gates.yaml", "version: 2\n")
    result = gate.passgate("burn-in", "ci_merge", "--agent", "nop")
    assert (result.returncode, result.stdout) == (2, "")
    assert "gates.yaml:1:10" in result.stderr
    assert not (gate.path / ".passgate").exists()


def test_an_agent_that_cannot_be_had_is_2(gate: Project) -> None:
    result = gate.passgate("burn-in", "ci_merge", "--agent", "cli:no-such-agent-anywhere {prompt}")
    assert result.returncode == 2
    assert "no-such-agent-anywhere" in result.stderr
    assert not (gate.path / ".passgate").exists()


@pytest.fixture
def metered(bare_project: Project, upstream: ScriptedUpstream) -> Project:
    """A task of two trials whose agent asks the scripted model, for 1 cent a trial."""
    bare_project.write("gates.yaml", METERED_GATES)
    bare_project.write("suites/golden/say-yes.yaml", METERED_TASK % {"task_id": "say-yes", "suite": "golden"})
    bare_project.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    bare_project.environment |= {"OPENAI_BASE_URL": upstream.openai_base_url, "OPENAI_API_KEY": "sk-key"}
    upstream.says(Says("yes"))
    return bare_project


def test_a_cost_cap_ends_it_with_what_was_measured(metered: Project) -> None:
    result = metered.passgate(
        "burn-in", "ci_merge", "--runs", "10", "--json", "--agent", "openai:m", "--jobs", "1", "--max-cost", "0.155"
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["why_ended"] == "the cost cap of $0.155 is spent"
    assert (found["first"], found["judged"]) == (5, 2)
    assert found["cost"] == pytest.approx(0.02)
    assert 0.14 <= found["spent"] <= 0.155


def test_a_cost_cap_that_no_run_fits_into_is_3(metered: Project) -> None:
    result = metered.passgate(
        "burn-in", "ci_merge", "--runs", "4", "--agent", "openai:m", "--jobs", "1", "--max-cost", "0.015"
    )
    assert (result.returncode, result.stdout) == (3, "")
    assert "--max-cost 0.015 left no money for a single run; the trials are in " in result.stderr
    assert len(journals(metered)) > 0


def test_no_money_at_all_is_3_and_no_trials_are_spoken_of(metered: Project) -> None:
    result = metered.passgate("burn-in", "ci_merge", "--runs", "4", "--agent", "nop", "--max-cost", "0")
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == "passgate: --max-cost 0 left no money for a single run\n"


def test_a_provider_that_cannot_be_had_is_3_with_its_error(metered: Project) -> None:
    metered.environment["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
    result = metered.passgate("burn-in", "ci_merge", "--runs", "2", "--agent", "openai:m")
    assert (result.returncode, result.stdout) == (3, "")
    assert "http://127.0.0.1:9/v1 cannot be reached" in result.stderr
    assert "so no trial ran" in result.stderr


def test_an_unknown_price_is_found_before_anything_is_paid(metered: Project, upstream: ScriptedUpstream) -> None:
    result = metered.passgate("burn-in", "ci_merge", "--agent", "openai:unknown", "--max-cost", "1")
    assert result.returncode == 2
    assert "the price of the model 'unknown' is unknown" in result.stderr
    assert upstream.count == 0


@pytest.mark.parametrize("kind", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_what_was_measured_is_reported_when_it_is_interrupted(gate: Project, kind: signal.Signals) -> None:
    mark = str(time.time_ns())
    gate.write("agent.sh", f"sleep 0.1{mark}; printf yes")
    command = gate.command("burn-in", "ci_merge", "--runs", "40", "--json", "--agent", f"cli:sh {gate.path}/agent.sh")
    ended = interrupted(gate, [*command, "--jobs", "4"], kind, lambda: len(journals(gate)) > 24)
    assert ended.returncode == 130, ended.stderr
    found = json.loads(ended.stdout)
    assert found["why_ended"] == "interrupted: the finished runs were judged"
    assert found["first"] == 20
    assert 1 <= found["judged"] < 20
    wait_until(lambda: marked_processes(mark) == [])


def test_an_interrupt_before_a_run_was_judged_says_how_many_had_begun(gate: Project) -> None:
    mark = str(time.time_ns())
    gate.write("agent.sh", f"sleep 60{mark}")
    command = gate.command("burn-in", "ci_merge", "--runs", "9", "--agent", f"cli:sh {gate.path}/agent.sh")
    ended = interrupted(gate, [*command, "--jobs", "2"], signal.SIGTERM, lambda: len(marked_processes(mark)) > 0)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert "interrupted before a run was judged: 2 of 9 runs had begun" in ended.stderr


def journals(project: Project) -> list[Path]:
    return list(project.path.glob(".passgate/burn-in/*/*.jsonl"))
