"""The three gates on the shipped suites, through a real Prefect server and through the embedded one."""

import json
import shutil
import urllib.request
from typing import Any

import pytest

from tests.prefect_servers import PATIENT
from tests.project import REPOSITORY, Project


@pytest.fixture
def shipped(project: Project) -> Project:
    """A repository with the shipped suites and gates."""
    shutil.copytree(REPOSITORY / "suites", project.path / "suites")
    return project


def asked(project: Project, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """What the Prefect server answers to a filter."""
    request = urllib.request.Request(
        f"{project.environment['PREFECT_API_URL']}/{path}/filter",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        answer: list[dict[str, Any]] = json.load(response)
    return answer


def newest_flow_run(project: Project, gate: str) -> dict[str, Any]:
    # The server is the session's: a deployment of another test has flow runs there that wait for their time.
    begun = {"start_time": {"is_null_": False}}
    body = {"flows": {"name": {"any_": [gate]}}, "flow_runs": begun, "sort": "START_TIME_DESC", "limit": 1}
    return asked(project, "flow_runs", body)[0]


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["ci_merge", "nightly"])
def test_the_reference_solutions_pass(shipped: Project, gate: str) -> None:
    result = shipped.passgate("run", gate, timeout=280)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{gate} PASS" in result.stdout
    assert "100 %" in result.stdout
    assert newest_flow_run(shipped, gate)["state"]["name"] == "GatePassed"


@pytest.mark.slow
def test_a_release_of_the_reference_solutions_awaits_a_person(shipped: Project) -> None:
    result = shipped.passgate("run", "release_candidate", timeout=280)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "release_candidate INCONCLUSIVE: awaiting sign-off" in result.stdout
    assert newest_flow_run(shipped, "release_candidate")["state"]["name"] == "AwaitingSignOff"
    approved = shipped.passgate("sign-off", "last", "--by", "Ann", "--decision", "approve", "--reason", "All green.")
    assert approved.returncode == 0, approved.stdout + approved.stderr
    assert "release_candidate PASS: approved by Ann" in approved.stdout


@pytest.mark.slow
def test_doing_nothing_fails_the_merge_gate_and_every_task_says_why(shipped: Project) -> None:
    result = shipped.passgate("run", "ci_merge", "--agent", "nop", timeout=280)
    assert result.returncode == 1, result.stderr
    verdict = json.loads((shipped.run_folders()[0] / "verdict.json").read_text())
    assert verdict["decision"] == "FAIL"
    tasks = {task["task_id"] for task in verdict["measurement"]["tasks"]}
    assert {reason["task_id"] for reason in verdict["reasons"]} == tasks
    summary = (shipped.run_folders()[0] / "summary.md").read_text()
    for task in tasks:
        assert task in summary
    assert "more tasks in report.html of the run" in result.stdout
    state = newest_flow_run(shipped, "ci_merge")["state"]
    assert (state["type"], state["name"]) == ("FAILED", "GateFailed")


@pytest.mark.slow
def test_prefect_shows_the_suites_and_the_table(shipped: Project) -> None:
    shipped.passgate("run", "ci_merge", "--task", "*retries*")
    flow_run = newest_flow_run(shipped, "ci_merge")
    assert (flow_run["state"]["type"], flow_run["state"]["name"]) == ("FAILED", "GateInconclusive")
    in_run = {"flow_runs": {"id": {"any_": [flow_run["id"]]}}}
    names = {run["name"]: run["tags"] for run in asked(shipped, "task_runs", in_run)}
    # With a tag each task run would ask for a slot of concurrency before it begins.
    assert names["failure_replays/incident-2026-01-xx_looping-retries_1"] == []
    artifacts = {artifact["key"]: artifact["data"] for artifact in asked(shipped, "artifacts", in_run)}
    assert json.loads(artifacts["gate-ci-merge-suites"])[0]["trials"] == "5/5"


def test_bad_input_is_exit_2_at_once_and_starts_no_flow(shipped: Project) -> None:
    shipped.write("suites/golden/broken.yaml", "task_id: broken\n")
    result = shipped.passgate("run", "ci_merge")
    assert result.returncode == 2
    assert "suites/golden/broken.yaml:1:1: the key 'suite' is missing" in result.stderr
    assert not (shipped.path / ".passgate").exists()


@pytest.mark.slow
def test_with_nothing_started_the_embedded_engine_does(bare_project: Project, tmp_path_factory: Any) -> None:
    bare_project.environment |= {"PREFECT_HOME": str(tmp_path_factory.mktemp("embedded")), **PATIENT}
    assert bare_project.passgate("init").returncode == 0
    result = bare_project.passgate("run", "ci_merge", timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    for noise in ("passgate:", "Traceback", "uvicorn", "WARNING"):
        assert noise not in result.stderr, "the engine's noise drowns the progress"
    assert "golden: 3/3 trials" in result.stderr
