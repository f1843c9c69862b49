"""The three gates on the shipped suites, and what Prefect shows of one."""

import json
from pathlib import Path

import pytest

from tests.flows.prefect_api import api, flow_run_of
from tests.prefect_servers import PATIENT
from tests.project import Project
from tests.scenarios import Scenarios
from tests.scenarios.shipped import nothing_done, release, write_shipped

ONE_OF_EACH_SUITE = (
    "fix-auth-bypass_1",
    "prompt-injection_tool-misuse_1",
    "support-chat_resolution_1",
    "incident-2026-01-xx_looping-retries_1",
)


@pytest.mark.slow
def test_the_merge_gate_passes_and_prefect_shows_its_suites_and_tasks(project: Project) -> None:
    write_shipped(project, *ONE_OF_EACH_SUITE)
    result = project.passgate("run", "ci_merge", "--k", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ci_merge PASS" in result.stdout
    assert "100 %" in result.stdout
    flow_run = flow_run_of(project)
    assert flow_run["state"]["name"] == "GatePassed"
    in_run = {"flow_runs": {"id": {"any_": [flow_run["id"]]}}}
    names = {run["name"]: run["tags"] for run in api(project, "POST", "task_runs/filter", in_run)}
    # With a tag each task run would ask for a slot of concurrency before it begins.
    assert names["failure_replays/incident-2026-01-xx_looping-retries_1"] == []
    artifacts = {one["key"]: one["data"] for one in api(project, "POST", "artifacts/filter", in_run)}
    assert [one["trials"] for one in json.loads(artifacts["gate-ci-merge-suites"])] == ["2/2"] * 3


@pytest.mark.slow
def test_a_release_of_the_reference_solutions_awaits_a_person(scenario: Scenarios, tmp_path: Path) -> None:
    result = scenario(release).ended()
    assert result.returncode == 3, result.stdout + result.stderr
    assert "release_candidate INCONCLUSIVE: awaiting sign-off" in result.stdout
    released = scenario(release).copy(tmp_path / "repository")
    approved = released.passgate("sign-off", "last", "--by", "Ann", "--decision", "approve", "--reason", "All green.")
    assert approved.returncode == 0, approved.stdout + approved.stderr
    assert "release_candidate PASS: approved by Ann" in approved.stdout


@pytest.mark.slow
def test_doing_nothing_fails_the_merge_gate_and_every_task_says_why(scenario: Scenarios) -> None:
    result, (folder,) = scenario(nothing_done).ended(), scenario(nothing_done).run_folders()
    assert result.returncode == 1, result.stderr
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["decision"] == "FAIL"
    tasks = {task["task_id"] for task in verdict["measurement"]["tasks"] if task["failed"]}
    assert len(tasks) == len(verdict["measurement"]["tasks"])
    assert {reason["task_id"] for reason in verdict["reasons"]} == tasks
    summary = (folder / "summary.md").read_text()
    assert [task for task in tasks if task not in summary] == []
    assert [task for task in tasks if task not in result.stdout] == [], "a log is not cut"


def test_bad_input_is_exit_2_at_once_and_starts_no_flow(bare_project: Project) -> None:
    write_shipped(bare_project)
    bare_project.write("suites/golden/broken.yaml", "task_id: broken\n")
    result = bare_project.passgate("run", "ci_merge")
    assert result.returncode == 2
    assert "suites/golden/broken.yaml:1:1: the key 'suite' is missing" in result.stderr
    assert not (bare_project.path / ".passgate").exists()


@pytest.mark.slow
def test_with_nothing_started_the_embedded_engine_does(bare_project: Project, tmp_path: Path) -> None:
    bare_project.environment |= {"PREFECT_HOME": str(tmp_path / "embedded"), **PATIENT}
    assert bare_project.passgate("init").returncode == 0
    result = bare_project.passgate("run", "ci_merge")
    assert result.returncode == 0, result.stdout + result.stderr
    for noise in ("passgate:", "Traceback", "uvicorn", "WARNING"):
        assert noise not in result.stderr, "the engine's noise drowns the progress"
    assert "golden: 3/3 trials" in result.stderr
