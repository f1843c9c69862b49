"""The deployments and automations that `init --prefect` writes, on a real server with a real worker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from passgate.tasks.model.run import RunRequest
from tests.cli.test_run import WRITES_OK
from tests.flows.test_flow_runs import api, seconds_to_cancel
from tests.processes import marked_processes
from tests.project import REPOSITORY, Project, clean_environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")
BY_WORKER = "Flow run was cancelled successfully."
"""The message of the last state of a flow run that a worker of Prefect has cancelled."""
SECRET = "hunter2-hunter2"
# An agent that needs the secret, and never does its task.
AGENT = f'[ "$DESK_KEY" = {SECRET} ] && exit 1; printf ok > result.txt'


def prefect(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.run([*PREFECT, *arguments], timeout=280)


@pytest.fixture(scope="module")
def deployed(prefect_server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A repository whose deployments and automations are on the server, with a worker."""
    project = Project(tmp_path_factory.mktemp("desks") / "Desk No. 7", dict(prefect_server))
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    assert project.passgate("init", "--prefect").returncode == 0
    for suite in ("golden", "adversarial", "open_ended", "failure_replays"):
        for file in (project.path / "suites" / suite).glob("*.yaml"):
            file.unlink()
        task = WRITES_OK.format(name=f"{suite}_1").replace("suite: golden", f"suite: {suite}")
        project.write(f"suites/{suite}/one.yaml", task)
    project.write("agent.sh", AGENT)
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Begin")
    file = project.path / "prefect.yaml"
    named = file.read_text().replace("agent: oracle", f"agent: \"cli:sh '{project.path}/agent.sh'\", k: 1")
    file.write_text(
        named.replace("# OPENAI_API_KEY: prefect-secret:desk-no-7-openai-key", "DESK_KEY: prefect-secret:desk")
    )
    project.run(
        [sys.executable, "-c", f"from prefect.blocks.system import Secret; Secret(value='{SECRET}').save('desk')"]
    )
    for arguments in (
        ("work-pool", "create", "desk-no-7", "--type", "process"),
        ("deploy", "--all"),
        ("automation", "create", "--from-file", "prefect-automations.yaml"),
    ):
        done = prefect(project, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    worker = subprocess.Popen(
        [*PREFECT, "worker", "start", "--pool", "desk-no-7"],
        cwd=tmp_path_factory.mktemp("worker"),
        env={**clean_environment(), **prefect_server, "PREFECT_LOGGING_TO_API_ENABLED": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield project
    finally:
        # How Prefect's worker ends, and how long that takes, is not what is shown here.
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def events(project: Project, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api(project, "POST", "events/filter", {"filter": {"event": {"name": [name]}}})[
        "events"
    ]
    return found


def test_a_failed_gate_fails_who_watches_it_and_a_secret_is_nowhere(deployed: Project) -> None:
    watched = prefect(deployed, "deployment", "run", "ci_merge/desk-no-7-ci-merge", "--watch")
    assert "GateFailed" in watched.stdout, watched.stdout + watched.stderr
    assert watched.returncode == 1
    for path in ("deployments/filter", "flow_runs/filter", "logs/filter", "artifacts/filter"):
        stored = json.dumps(api(deployed, "POST", path, {}))
        assert "desk" in stored.lower() or path == "logs/filter"
        assert SECRET not in stored
    files = [file for folder in deployed.run_folders() for file in folder.iterdir() if file.is_file()]
    assert files
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def test_a_run_that_gives_some_options_has_those_of_the_deployment_for_the_others(deployed: Project) -> None:
    given = ("--param", 'request={"jobs": 1}')
    watched = prefect(deployed, "deployment", "run", "ci_merge/desk-no-7-ci-merge", *given, "--watch")
    assert "GateFailed" in watched.stdout, watched.stdout + watched.stderr
    requests = [json.loads((folder / "plan.json").read_text())["request"] for folder in deployed.run_folders()]
    (request,) = [one for one in requests if one.get("jobs") == 1]
    assert (request["agent"], request["k"]) == (f"cli:sh '{deployed.path}/agent.sh'", 1)


def test_a_red_night_is_an_event_that_fires_its_automation(deployed: Project) -> None:
    watched = prefect(deployed, "deployment", "run", "nightly/desk-no-7-nightly", "--watch")
    assert "GateAlarm" in watched.stdout, watched.stdout + watched.stderr
    wait_until(
        lambda: any(one["resource"]["passgate.gate"] == "nightly" for one in events(deployed, "passgate.verdict"))
    )
    told = next(one for one in events(deployed, "passgate.verdict") if one["resource"]["passgate.gate"] == "nightly")
    assert told["resource"]["prefect.resource.id"].startswith("passgate.run.")
    assert told["resource"]["passgate.red"] == "true"
    assert told["resource"]["passgate.alarms"] == "below_floor,crashed_agents"
    assert "prefect.tag.desk-no-7" in {one["prefect.resource.id"] for one in told["related"]}

    # The server may have heard of the event before it minded the automation.
    again = {key: told[key] for key in ("event", "resource", "related", "payload", "occurred")}
    body = {**again, "id": "00000000-0000-4000-8000-000000000007"}
    api(deployed, "POST", "events", [body])
    wait_until(lambda: "desk-no-7: the nightly is red" in fired(deployed), seconds=120)


def test_the_runs_of_deployments_are_in_the_history(deployed: Project) -> None:
    watched = prefect(deployed, "deployment", "run", "nightly/desk-no-7-nightly", "--watch")
    assert "GateAlarm" in watched.stdout, watched.stdout + watched.stderr
    listed = deployed.passgate("history", "list", "--json")
    assert "left out" not in listed.stderr
    kept = {folder.name for folder in deployed.run_folders() if (folder / "verdict.json").exists()}
    assert kept <= {one["run_id"] for one in json.loads(listed.stdout)}


def fired(project: Project) -> set[str]:
    """The names of the automations that have fired."""
    return {one["resource"]["prefect.resource.name"] for one in events(project, "prefect.automation.triggered")}


@pytest.mark.parametrize(
    ("event", "automation"),
    [
        ("passgate.drift", "desk-no-7: the history has drifted"),
        ("passgate.sign-off-pending", "desk-no-7: a release awaits its sign-off"),
    ],
)
def test_what_a_team_has_to_know_fires_its_automation(deployed: Project, event: str, automation: str) -> None:
    def has_fired() -> bool:
        # The server may have heard of an event before it minded the automation.
        told = {
            "id": str(uuid4()),
            "event": event,
            "occurred": datetime.now(UTC).isoformat(),
            "resource": {"prefect.resource.id": "passgate.run.one", "passgate.gate": "nightly"},
            "related": [{"prefect.resource.id": "prefect.tag.desk-no-7", "prefect.resource.role": "tag"}],
        }
        api(deployed, "POST", "events", [told])
        time.sleep(1)
        return automation in fired(deployed)

    wait_until(has_fired, seconds=200)


def test_the_lack_of_a_nightly_fires_its_automation(deployed: Project) -> None:
    shipped = yaml.safe_load((deployed.path / "prefect-automations.yaml").read_text())["automations"]
    (lacking,) = [one for one in shipped if one["trigger"]["within"] == 26 * 3600]
    lacking["name"] = "desk-no-7: no nightly for ten seconds"
    lacking["trigger"]["within"] = 10
    file = deployed.write("lacking.yaml", yaml.safe_dump({"automations": [lacking]}))
    created = prefect(deployed, "automation", "create", "--from-file", str(file))
    assert created.returncode == 0, created.stdout + created.stderr
    wait_until(lambda: lacking["name"] in fired(deployed), seconds=200)


def hanging(project: Project) -> tuple[dict[str, Any], str]:
    """A flow run whose agent hangs, and the mark of the agent's process."""
    mark = f"4242.{time.time_ns()}"
    project.write(f"hangs-{mark}.sh", f"sleep {mark}")
    request = json.dumps({"agent": f"cli:sh '{project.path}/hangs-{mark}.sh'", "k": 1})
    begun = prefect(project, "deployment", "run", "ci_merge/desk-no-7-ci-merge", "--param", f"request={request}")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    wait_until(lambda: marked_processes(f"sleep\x00{mark}") != [], seconds=200)
    running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}, "parent_task_run_id": {"is_null_": True}}}
    (found,) = [one for one in api(project, "POST", "flow_runs/filter", running) if mark in one["name"]]
    return found, mark


def ends_of(project: Project, flow_run: dict[str, Any]) -> list[dict[str, Any]]:
    """The states in which a flow run has ended, one after the other."""
    states = api(project, "GET", f"flow_run_states/?flow_run_id={flow_run['id']}")
    return [one for one in states if one["type"] not in {"SCHEDULED", "PENDING", "RUNNING", "CANCELLING"}]


def engine_of(flow_run: dict[str, Any]) -> list[int]:
    """The process in which a worker runs a flow run, while it is there."""
    named = f"PREFECT__FLOW_RUN_ID={flow_run['id']}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if named in (place / "environ").read_bytes() and b"prefect.engine" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def test_a_flow_run_that_is_cancelled_on_a_worker_keeps_its_journal_and_says_how_it_goes_on(deployed: Project) -> None:
    flow_run, mark = hanging(deployed)
    cancelled = prefect(deployed, "flow-run", "cancel", flow_run["id"])
    assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
    path = f"flow_runs/{flow_run['id']}"
    wait_until(lambda: api(deployed, "GET", path)["state"]["message"] == BY_WORKER, seconds=200)
    wait_until(lambda: marked_processes(f"sleep\x00{mark}") == [])
    (run,) = [one for one in deployed.run_folders() if mark in (one / "plan.json").read_text()]
    assert list(run.glob("journal*"))
    ended = ends_of(deployed, flow_run)
    assert seconds_to_cancel(deployed, flow_run["id"]) < 30
    assert [one["type"] for one in ended] == ["CANCELLED", "CANCELLED"]
    assert f"passgate run ci_merge --resume {run.name}" in ended[0]["message"]
    logs = {"logs": {"flow_run_id": {"any_": [flow_run["id"]]}}}
    wait_until(
        lambda: any(f"--resume {run.name}" in one["message"] for one in api(deployed, "POST", "logs/filter", logs))
    )


def test_a_worker_that_ends_the_process_of_a_cancelled_flow_run_makes_it_no_crash(deployed: Project) -> None:
    """On a busy machine its SIGTERM comes at any moment of a flow run that ends as cancelled."""
    flow_run, _ = hanging(deployed)
    path, cancelling = f"flow_runs/{flow_run['id']}", {"state": {"type": "CANCELLING"}}
    (process,) = engine_of(flow_run)
    api(deployed, "POST", f"{path}/set_state", cancelling)
    while engine_of(flow_run):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        time.sleep(0.02)
    wait_until(lambda: api(deployed, "GET", path)["state"]["message"] == BY_WORKER, seconds=200)
    assert {one["type"] for one in ends_of(deployed, flow_run)} == {"CANCELLED"}


@pytest.mark.parametrize("given", ['{"k": 0}', '{"jobs": 0}', '{"max_cost": -1}', '{"agnet": "nop"}'])
def test_a_parameter_out_of_its_bounds_is_refused_before_a_run(deployed: Project, given: str) -> None:
    refused = prefect(deployed, "deployment", "run", "ci_merge/desk-no-7-ci-merge", "--param", f"request={given}")
    assert refused.returncode == 1
    assert "Validation failed" in refused.stdout + refused.stderr


def test_the_form_describes_each_parameter(deployed: Project) -> None:
    shown = api(deployed, "GET", "deployments/name/ci_merge/desk-no-7-ci-merge")["parameter_openapi_schema"]
    parameters = shown["definitions"]["RunRequest"]["properties"]
    assert set(parameters) == set(RunRequest.model_fields)
    assert [name for name, parameter in parameters.items() if not parameter.get("description")] == []


def test_the_repository_s_own_deployments_are_those_that_init_writes(tmp_path: Path) -> None:
    project = Project(tmp_path / "passgate")
    project.path.mkdir()
    assert project.passgate("init", "--prefect").returncode == 0
    written = (project.path / "prefect.yaml").read_text().replace("tags: [passgate, passgate]", "tags: [passgate]")
    assert written == (REPOSITORY / "prefect.yaml").read_text()
