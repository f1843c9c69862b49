"""The deployments and automations that `init --prefect` writes, on a real server with a real worker."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from passgate.tasks.model.run import RunRequest
from passgate.tasks.planning.plan import start_time
from tests.flows.desk import SECRET, shared_desk
from tests.flows.prefect_api import api, engines_of, prefect, processes_of, succeeded
from tests.processes import marked_processes
from tests.project import REPOSITORY, Project
from tests.sharing import made_once
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
MERGE_GATE, NIGHTLY = "ci_merge/desk-no-7-ci-merge", "nightly/desk-no-7-nightly"
OF_DESK = {"prefect.resource.id": "prefect.tag.desk-no-7", "prefect.resource.role": "tag"}
ENDED = ("COMPLETED", "FAILED", "CRASHED")
Kept = dict[str, Any]


@pytest.fixture
def desk(prefect_server: dict[str, str], users_of_servers: Path) -> Project:
    return shared_desk(users_of_servers)


@pytest.fixture
def kept(users_of_servers: Path) -> Callable[[str, Callable[[], Kept]], Kept]:
    """Gives what has happened on the desk once for all tests, by a name; whoever comes first makes it happen."""

    def kept(name: str, happen: Callable[[], Kept]) -> Kept:
        def write(folder: Path) -> None:
            (folder / "kept.json").write_text(json.dumps(happen()))

        folder = made_once(users_of_servers.parent / f"desks-{name}", write)
        found: Kept = json.loads((folder / "kept.json").read_text())
        return found

    return kept


@pytest.fixture
def watched(desk: Project, kept: Callable[[str, Callable[[], Kept]], Kept]) -> Kept:
    """A run of the merge gate with one job: what Prefect's command that watches it has printed, and the flow run.

    The command begins when the flow run has ended: it gives up when a server takes 10 s to open a stream of events.
    """

    def watch() -> Kept:
        succeeded(desk, "deployment", "run", MERGE_GATE, "--param", "jobs=1")
        begun = flow_runs_of_deployment(desk, MERGE_GATE)
        (flow_run,) = [one for one in begun if one["parameters"].get("jobs") == 1]
        wait_until(lambda: api(desk, "GET", f"flow_runs/{flow_run['id']}")["state_type"] in ENDED)
        ended = prefect(desk, "flow-run", "watch", flow_run["id"])
        return {"returncode": ended.returncode, "output": ended.stdout + ended.stderr, "flow_run": flow_run}

    return kept("watched", watch)


@pytest.fixture
def night(desk: Project, kept: Callable[[str, Callable[[], Kept]], Kept]) -> Kept:
    """The flow run of a nightly that nobody has started: for a while it has a schedule of every few seconds."""

    def pass_by() -> Kept:
        schedules = f"deployments/{api(desk, 'GET', f'deployments/name/{NIGHTLY}')['id']}/schedules"
        (made,) = api(desk, "POST", schedules, [{"schedule": {"interval": 5}, "active": True}])
        wait_until(lambda: nights(desk, "RUNNING", *ENDED))
        api(desk, "DELETE", f"{schedules}/{made['id']}")
        wait_until(lambda: nights(desk, *ENDED))
        return nights(desk, *ENDED)[0]

    return kept("night", pass_by)


def nights(desk: Project, *states: str) -> list[dict[str, Any]]:
    """The flow runs of the nightly in these states; another that is due while one runs is cancelled."""
    return flow_runs_of_deployment(desk, NIGHTLY, state={"type": {"any_": states}})


def flow_runs_of_deployment(desk: Project, path: str, **which: Any) -> list[dict[str, Any]]:
    gate, deployment = path.split("/")
    of = {"flows": {"name": {"any_": [gate]}}, "deployments": {"name": {"any_": [deployment]}}}
    found: list[dict[str, Any]] = api(desk, "POST", "flow_runs/filter", {**of, "flow_runs": which})
    return found


def own_run(desk: Project, flow_run: dict[str, Any]) -> Path:
    """The folder of the run that has begun in a flow run."""
    (folder,) = desk.path.glob(f".passgate/runs/*-{flow_run['id'].replace('-', '')[-8:]}")
    return folder


def test_a_secret_is_nowhere(desk: Project, watched: Kept) -> None:
    run_id = watched["flow_run"]["id"]
    in_run = {"flow_runs": {"id": {"any_": [run_id]}}}
    logs = {"logs": {"flow_run_id": {"any_": [run_id]}}}
    wait_until(lambda: "Finished in state" in json.dumps(api(desk, "POST", "logs/filter", logs)))
    for path, wanted in {
        "deployments/filter": {"deployments": {"name": {"like_": "desk-no-7"}}},
        "flow_runs/filter": in_run,
        "logs/filter": logs,
        "artifacts/filter": in_run,
    }.items():
        stored = api(desk, "POST", path, wanted)
        assert stored, path
        assert SECRET not in json.dumps(stored)
    files = [file for file in own_run(desk, watched["flow_run"]).iterdir() if file.is_file()]
    assert files
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def test_a_failed_gate_fails_who_watches_it_with_the_options_that_are_given_and_those_of_the_deployment(
    desk: Project, watched: Kept
) -> None:
    assert "GateFailed" in watched["output"]
    assert watched["returncode"] == 1
    request = json.loads((own_run(desk, watched["flow_run"]) / "plan.json").read_text())["request"]
    assert (request["jobs"], request["agent"], request["k"]) == (1, f"cli:sh '{desk.path}/agent.sh'", 1)


def test_a_nightly_fires_by_itself_and_ends_with_its_verdict(desk: Project, night: Kept) -> None:
    assert (night["auto_scheduled"], night["state_name"]) == (True, "GateAlarm")
    folder = own_run(desk, night)
    assert (folder / "verdict.json").exists()
    begun = datetime.fromisoformat(night["start_time"]).replace(microsecond=0)
    assert start_time(folder.name) == begun, "Prefect makes scheduled flow runs long before they begin"
    listed = desk.passgate("history", "list", "--json")
    assert "left out" not in listed.stderr
    assert folder.name in {one["run_id"] for one in json.loads(listed.stdout)}


def test_a_red_night_is_an_event_that_fires_its_automation(desk: Project, night: Kept) -> None:
    run = f"passgate.run.{own_run(desk, night).name}"
    wanted = {"event": {"name": ["passgate.verdict"]}, "resource": {"id": [run]}}
    wait_until(lambda: events(desk, wanted))
    (told,) = events(desk, wanted)
    assert told["resource"]["passgate.gate"] == "nightly"
    assert told["resource"]["passgate.red"] == "true"
    assert told["resource"]["passgate.alarms"] == "below_floor,crashed_agents"
    assert OF_DESK["prefect.resource.id"] in {one["prefect.resource.id"] for one in told["related"]}
    again = {key: told[key] for key in ("event", "resource", "related", "payload")}
    wait_until_fired(desk, "the nightly is red", **again)


def events(desk: Project, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api(desk, "POST", "events/filter", {"filter": wanted})["events"]
    return found


def has_fired(desk: Project, automation: str) -> bool:
    labels = {"prefect.resource.name": [f"desk-no-7: {automation}"]}
    return events(desk, {"event": {"name": ["prefect.automation.triggered"]}, "resource": {"labels": labels}}) != []


def wait_until_fired(desk: Project, automation: str, **event: Any) -> None:
    """Tell the server of an event, again and again: it may have heard of one before it minded the automation."""

    def is_told() -> bool:
        api(desk, "POST", "events", [{"id": str(uuid4()), "occurred": datetime.now(UTC).isoformat(), **event}])
        time.sleep(0.5)
        return has_fired(desk, automation)

    wait_until(is_told)


@pytest.mark.parametrize(
    ("event", "automation"),
    [
        ("passgate.drift", "the history has drifted"),
        ("passgate.sign-off-pending", "a release awaits its sign-off"),
    ],
)
def test_what_a_team_has_to_know_fires_its_automation(desk: Project, event: str, automation: str) -> None:
    resource = {"prefect.resource.id": "passgate.run.one", "passgate.gate": "nightly"}
    wait_until_fired(desk, automation, event=event, resource=resource, related=[OF_DESK])


def test_the_lack_of_a_nightly_fires_its_automation(desk: Project) -> None:
    shipped = yaml.safe_load((desk.path / "prefect-automations.yaml").read_text())["automations"]
    (lacking,) = [one for one in shipped if one["trigger"]["within"] == 26 * 3600]
    lacking["name"] = "desk-no-7: no nightly for ten seconds"
    lacking["trigger"]["within"] = 10
    file = desk.write("lacking.yaml", yaml.safe_dump({"automations": [lacking]}))
    succeeded(desk, "automation", "create", "--from-file", str(file))
    wait_until(lambda: has_fired(desk, "no nightly for ten seconds"))


def hanging(desk: Project) -> tuple[dict[str, Any], str]:
    """A flow run whose agent hangs, and the mark of the agent's process."""
    mark = f"4242.{time.time_ns()}"
    desk.write(f"hangs-{mark}.sh", f"sleep {mark}")
    agent = f"cli:sh '{desk.path}/hangs-{mark}.sh'"
    succeeded(desk, "deployment", "run", MERGE_GATE, "--param", f"agent={agent}", "--param", "k=1")
    wait_until(lambda: marked_processes(f"sleep\x00{mark}") != [])
    (found,) = flow_runs_of_deployment(desk, MERGE_GATE, name={"like_": mark})
    return found, mark


def states_at_its_end(desk: Project, flow_run: dict[str, Any]) -> list[dict[str, Any]]:
    """The states in which a flow run has ended, one after the other, once all of its processes have ended.

    The last one is that of the worker, unless the flow run ended before the worker heard that it was cancelled.
    """
    wait_until(lambda: processes_of(flow_run) == [])
    states = api(desk, "GET", f"flow_run_states/?flow_run_id={flow_run['id']}")
    return [one for one in states if one["type"] not in {"SCHEDULED", "PENDING", "RUNNING", "CANCELLING"}]


def test_a_flow_run_that_is_cancelled_on_a_worker_keeps_its_journal_and_says_how_it_goes_on(desk: Project) -> None:
    flow_run, mark = hanging(desk)
    succeeded(desk, "flow-run", "cancel", flow_run["id"])
    ended = states_at_its_end(desk, flow_run)
    wait_until(lambda: marked_processes(f"sleep\x00{mark}") == [])
    run = own_run(desk, flow_run)
    assert list(run.glob("journal*"))
    assert {one["type"] for one in ended} == {"CANCELLED"}
    assert f"passgate run ci_merge --resume {run.name}" in ended[0]["message"]
    logs = {"logs": {"flow_run_id": {"any_": [flow_run["id"]]}}}
    wait_until(lambda: any(f"--resume {run.name}" in one["message"] for one in api(desk, "POST", "logs/filter", logs)))


def test_a_worker_that_ends_the_process_of_a_cancelled_flow_run_makes_it_no_crash(desk: Project) -> None:
    """On a busy machine its SIGTERM comes at any moment of a flow run that ends as cancelled.

    Here it may come before the worker has heard that it is to cancel, and then nobody ends the flow run.
    """
    flow_run, _ = hanging(desk)
    (process,) = engines_of(flow_run)
    api(desk, "POST", f"flow_runs/{flow_run['id']}/set_state", {"state": {"type": "CANCELLING"}})

    def has_ended() -> bool:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        return not engines_of(flow_run)

    wait_until(has_ended)
    assert {one["type"] for one in states_at_its_end(desk, flow_run)} <= {"CANCELLED"}


@pytest.mark.parametrize(
    ("given", "refusal"), [("k=0", "Validation failed"), ("agnet=nop", "not found on the deployment")]
)
def test_a_parameter_out_of_its_bounds_is_refused_before_a_run(desk: Project, given: str, refusal: str) -> None:
    refused = prefect(desk, "deployment", "run", MERGE_GATE, "--param", given)
    assert refused.returncode == 1
    assert refusal in " ".join((refused.stdout + refused.stderr).split())


def test_the_form_describes_each_parameter(desk: Project) -> None:
    shown = api(desk, "GET", f"deployments/name/{MERGE_GATE}")["parameter_openapi_schema"]
    parameters = shown["properties"]
    assert set(parameters) == set(RunRequest.model_fields)
    assert [name for name, parameter in parameters.items() if not parameter.get("description")] == []


def test_the_repository_s_own_deployments_are_those_that_init_writes(tmp_path: Path) -> None:
    project = Project(tmp_path / "passgate")
    project.path.mkdir()
    assert project.passgate("init", "--prefect").returncode == 0
    written = (project.path / "prefect.yaml").read_text().replace("tags: [passgate, passgate]", "tags: [passgate]")
    assert written == (REPOSITORY / "prefect.yaml").read_text()
