"""A run on a work pool of Prefect: batches as flow runs of real workers, the run kept on an S3 server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from passgate.tasks.history.run_store import RunStore
from tests.builders import task_document
from tests.flows.test_seam import GATES
from tests.object_store import ObjectStore, object_store
from tests.processes import how_to_resume, parent_of, process_ids
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import wait_until

__all__ = ["object_store"]

TASKS, K = 6, 3
AGENT = """
import pathlib, time

def agent(attempt):
    folder = pathlib.Path(__file__).parent
    with (folder / "calls.log").open("a") as log:
        log.write(f"{attempt.task_id} {attempt.trial}\\n")
    time.sleep(1.0)
    return "no" if attempt.task_id == "t1" else "yes"
"""

# A coordinator that gives up a batch after twenty seconds: a lease is renewed every fifteen.
IMPATIENT = """
import sys
from passgate.flows import work_pool
from passgate.flows.process.supervisor import main
work_pool._SECONDS_TO_HOLD, work_pool._SECONDS_TO_RENEW = 20.0, 2.0
sys.exit(main())
"""


def calls(folder: Path) -> Counter[str]:
    log = folder / "calls.log"
    return Counter(log.read_text().splitlines() if log.exists() else [])


def asked(server: dict[str, str], method: str, path: str, content: Any = None) -> Any:
    """What the server answers; a busy one is asked again."""
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        answers.append(httpx.request(method, f"{server['PREFECT_API_URL']}/{path}", json=content, timeout=60))
        return answers[-1].status_code < httpx.codes.INTERNAL_SERVER_ERROR

    wait_until(is_answered)
    answers[-1].raise_for_status()
    return answers[-1].json() if answers[-1].content else None


def failed_task_run(server: dict[str, str], name: str) -> dict[str, Any]:
    """A task run of the newest ci_merge that has failed, once the server has it, which other tests use too."""
    begun = {"flows": {"name": {"any_": ["ci_merge"]}}, "flow_runs": {"start_time": {"is_null_": False}}}
    flow_run = asked(server, "POST", "flow_runs/filter", begun | {"sort": "START_TIME_DESC", "limit": 1})[0]
    wanted = {"flow_runs": {"id": {"any_": [flow_run["id"]]}}, "task_runs": {"name": {"any_": [name]}}}
    found: list[dict[str, Any]] = []

    def is_recorded() -> bool:
        found[:] = [
            one for one in asked(server, "POST", "task_runs/filter", wanted) if one["state_name"] == "TaskFailed"
        ]
        return bool(found)

    wait_until(is_recorded)
    return found[0]


def make_pool(server: dict[str, str], name: str, working_folder: Path) -> None:
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    template["variables"]["properties"]["working_dir"]["default"] = str(working_folder)
    asked(server, "POST", "work_pools/", {"name": name, "type": "process", "base_job_template": template})


@contextmanager
def a_worker(server: dict[str, str], name: str, folder: Path, environment: dict[str, str]) -> Iterator[int]:
    """A worker of a pool; gives its process id."""
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", name, "--limit", "2"]
    worker = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "PREFECT_WORKER_QUERY_SECONDS": "2"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield worker.pid
    finally:
        # As when its machine is lost: nobody tells Prefect.
        for process_id in [worker.pid, *descendants(worker.pid)]:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        worker.wait()


def descendants(process_id: int) -> list[int]:
    children = [one for one in process_ids() if parent_of(one) == process_id]
    return children + [one for child in children for one in descendants(child)]


@pytest.fixture
def repository(bare_project: Project, prefect_server: dict[str, str], object_store: ObjectStore) -> Project:
    bare_project.environment = {**prefect_server, **object_store.environment}
    bare_project.write("gates.yaml", GATES)
    for number in range(TASKS):
        bare_project.write(f"suites/golden/t{number}.yaml", json.dumps(task_document(task_id=f"t{number}")))
    bare_project.write("agent.py", textwrap.dedent(AGENT))
    return bare_project


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_coordinator_is_resumed_from_an_empty_folder_and_repeats_no_finished_trial(
    repository: Project, prefect_server: dict[str, str], object_store: ObjectStore, tmp_path: Path
) -> None:
    url, pool = object_store.new_url(), "killed-coordinator"
    machine, other = tmp_path / "machine", Project(tmp_path / "other", repository.environment)
    for folder in (machine, other.path):
        folder.mkdir()
        shutil.copy(repository.path / "agent.py", folder)
    make_pool(prefect_server, pool, machine)
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", url, "--work-pool", pool)
    command = repository.command(*run, "--jobs", "2", "--workers", "2")
    errors = repository.path / "errors.log"
    with a_worker(prefect_server, pool, machine, repository.full_environment()), errors.open("wb") as stderr:
        coordinator = subprocess.Popen(command, cwd=repository.path, env=repository.full_environment(), stderr=stderr)
        try:
            wait_until(lambda: coordinator.poll() is not None or _has_trials(object_store, url), 240)
            assert coordinator.poll() is None, errors.read_text()
        finally:
            coordinator.kill()
            coordinator.wait()
    (run_id,) = {name.partition("/")[0] for name in object_store.keys(url)}
    kept = {f"{one.task_id} {one.trial}" for one in RunStore(f"{url}/{run_id}").read_trials()}
    with a_worker(prefect_server, pool, machine, repository.full_environment()):
        result = other.passgate("run", "ci_merge", "--resume", f"{url}/{run_id}", timeout=300)
    assert result.returncode == 1, result.stderr
    assert "t1" in result.stdout
    assert failed_task_run(prefect_server, "golden/t1")["state"]["message"].startswith(f"0/{K} trials passed; ")
    done = calls(machine)
    assert len(done) == TASKS * K
    assert {one: done[one] for one in kept} == dict.fromkeys(kept, 1)
    assert calls(other.path) == calls(repository.path) == Counter()
    trials = RunStore(f"{url}/{run_id}").read_trials()
    assert sorted((one.task_id, one.trial) for one in trials) == [
        (f"t{number}", trial) for number in range(TASKS) for trial in range(K)
    ]
    runs = asked(prefect_server, "POST", "flow_runs/filter", {"flows": {"name": {"any_": ["passgate-batch"]}}})
    stores = {one["parameters"]["store"] for one in runs}
    assert {store for store in stores if store.startswith(f"{url}/")} == {f"{url}/{run_id}"}


def _has_trials(store: ObjectStore, url: str) -> bool:
    return any("/journal/" in name for name in store.keys(url))


@pytest.mark.slow
def test_what_a_work_pool_needs_is_said(
    repository: Project, prefect_server: dict[str, str], object_store: ObjectStore
) -> None:
    run = ("run", "ci_merge", "--agent", "python:agent:agent")
    result = repository.passgate(*run, "--work-pool", "nowhere")
    assert (result.returncode, "--work-pool needs --run-store" in result.stderr) == (2, True), result.stderr
    url = object_store.new_url()
    make_pool(prefect_server, "nowhere-else", repository.path)
    result = repository.passgate(*run, "--work-pool", "nowhere", "--run-store", url)
    assert result.returncode == 2, result.stderr
    assert "has no work pool 'nowhere'; it has nowhere-else" in result.stderr
    remedy = "(`prefect work-pool ls`): make it with `prefect work-pool create nowhere`, or correct --work-pool\n"
    assert result.stderr.endswith(remedy)
    assert "--resume" not in result.stderr
    assert object_store.keys(url) == []
    assert not list(repository.path.glob(".passgate/runs/*"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_pool_without_workers_is_told_and_a_signal_cancels_what_waits_there(
    repository: Project, prefect_server: dict[str, str], object_store: ObjectStore
) -> None:
    pool, url = "without-workers", object_store.new_url()
    make_pool(prefect_server, pool, repository.path)
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", url, "--work-pool", pool)
    errors = repository.path / "errors.log"
    # As in many images: messages must not wait for the end of the process.
    environment = repository.full_environment(PYTHONUNBUFFERED="1")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(repository.command(*run), cwd=repository.path, env=environment, stderr=stderr)
    try:
        told = f"the work pool {pool} has no worker; the run waits for `prefect worker start --pool {pool}`"
        wait_until(lambda: process.poll() is not None or told in errors.read_text(), 400)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 130, errors.read_text()
    finally:
        process.kill()
        process.wait()
    (run_id,) = {name.partition("/")[0] for name in object_store.keys(url)}
    tagged = {"flow_runs": {"tags": {"all_": [f"passgate-run={run_id}"]}}}

    def states() -> set[str]:
        return {one["state_type"] for one in asked(prefect_server, "POST", "flow_runs/filter", tagged)}

    wait_until(lambda: states() == {"CANCELLED"})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_on_two_pools_leave_each_other_the_deployment_of_their_batches(
    repository: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    repository.write("prefect.yaml", "name: two-pools\n")
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", f"file://{tmp_path}/runs")
    processes = []
    try:
        for pool in ("first-pool", "second-pool"):
            make_pool(prefect_server, pool, repository.path)
            command = repository.command(*run, "--work-pool", pool)
            processes.append(subprocess.Popen(command, cwd=repository.path, env=repository.full_environment()))
            waiting = {"work_pools": {"name": {"any_": [pool]}}}
            wait_until(lambda on=waiting: asked(prefect_server, "POST", "flow_runs/filter", on) != [], 200)  # type: ignore[misc]
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    deployments = asked(prefect_server, "POST", "deployments/filter", {"deployments": {"name": {"like_": "two-pools"}}})
    assert {one["name"]: one["work_pool_name"] for one in deployments} == {
        "two-pools-batch": "first-pool",
        "two-pools-second-pool-batch": "second-pool",
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_only_a_batch_whose_machine_is_gone_is_handed_out_again(
    repository: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    pool, environment = "lost-machine", repository.full_environment()
    make_pool(prefect_server, pool, repository.path)
    run = ["run", "ci_merge", "--agent", "python:agent:agent", "--k", "5", "--jobs", "1", "--workers", "1"]
    command = [sys.executable, "-c", IMPATIENT, *run, "--run-store", f"file://{tmp_path}/runs", "--work-pool", pool]
    errors = repository.path / "errors.log"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, cwd=repository.path, env=environment, stderr=stderr)
    try:
        with a_worker(prefect_server, pool, repository.path, environment):
            wait_until(lambda: process.poll() is not None or len(calls(repository.path)) > 3, 300)
        before = calls(repository.path)
        with a_worker(prefect_server, pool, repository.path, environment):
            assert process.wait(timeout=300) == 1, errors.read_text()
    finally:
        process.kill()
        process.wait()
    (folder,) = [one for one in (tmp_path / "runs").iterdir() if one.is_dir()]
    tagged = {"flow_runs": {"tags": {"all_": [f"passgate-run={folder.name}"]}}}
    assert len(asked(prefect_server, "POST", "flow_runs/filter", tagged)) == 2
    done = calls(repository.path)
    assert len(done) == TASKS * 5
    assert done.total() <= TASKS * 5 + 1, "more was run again than was in flight"
    assert 0 < len(before) < TASKS * 5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_cannot_run_batches_says_why(
    repository: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    pool, machine, runs = "without-the-agent", tmp_path / "machine", tmp_path / "runs"
    machine.mkdir()
    make_pool(prefect_server, pool, machine)
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", f"file://{runs}", "--work-pool", pool)
    with a_worker(prefect_server, pool, machine, repository.full_environment()):
        without_the_agent = repository.passgate(*run, timeout=300)
        (machine / "passgate.py").write_text("raise ImportError('no passgate here')")
        without_passgate = repository.passgate(*run, "--workers", "1", timeout=300)
    assert (without_the_agent.returncode, without_passgate.returncode) == (2, 3), without_passgate.stderr
    assert "agent" in without_the_agent.stderr.splitlines()[-1], without_the_agent.stderr
    said = without_passgate.stderr.splitlines()[-1]
    assert "lost its worker 3 times: its flow run " in said
    assert "has ended without an outcome as Crashed: Process exited with status code: 1" in said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_signal_ends_a_run_on_a_work_pool_and_its_batches(
    repository: Project, prefect_server: dict[str, str], object_store: ObjectStore
) -> None:
    pool, url = "ended-by-a-signal", object_store.new_url()
    make_pool(prefect_server, pool, repository.path)
    run = ("run", "ci_merge", "--agent", "python:agent:agent", "--run-store", url, "--work-pool", pool, "--k", "60")
    errors, environment = repository.path / "errors.log", repository.full_environment()
    with a_worker(prefect_server, pool, repository.path, environment) as worker:
        with errors.open("wb") as stderr:
            command = repository.command(*run, "--jobs", "2", "--workers", "2")
            process = subprocess.Popen(command, cwd=repository.path, env=environment, stderr=stderr)
        try:
            wait_until(lambda: process.poll() is not None or _has_trials(object_store, url), 300)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 130, errors.read_text()
        finally:
            process.kill()
            process.wait()
        wait_until(lambda: descendants(worker) == [], 120)
    assert errors.read_text().splitlines()[-1].endswith(how_to_resume(repository.path))
    assert 0 < len(calls(repository.path)) < TASKS * 50


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_cost_cap_holds_over_the_workers_of_a_pool(
    repository: Project, prefect_server: dict[str, str], object_store: ObjectStore, upstream: ScriptedUpstream
) -> None:
    upstream.says(Says("yes"))  # for a cent
    repository.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    repository.environment |= {"OPENAI_BASE_URL": upstream.openai_base_url, "OPENAI_API_KEY": "sk-any"}
    pool, url, environment = "cost-cap", object_store.new_url(), repository.full_environment()
    make_pool(prefect_server, pool, repository.path)
    run = ("run", "ci_merge", "--agent", "openai:m", "--run-store", url, "--work-pool", pool)
    limits = ("--k", "30", "--jobs", "8", "--workers", "4", "--max-cost", "0.415")
    with (
        a_worker(prefect_server, pool, repository.path, environment),
        a_worker(prefect_server, pool, repository.path, environment),
    ):
        result = repository.passgate(*run, *limits, timeout=400)
    assert result.returncode == 3, result.stdout + result.stderr
    (run_id,) = {name.partition("/")[0] for name in object_store.keys(url)}
    trials = RunStore(f"{url}/{run_id}").read_trials()
    assert upstream.count == 41, "the shares pay for ten calls each, and what is left over pays for one more"
    assert sum(one.cost for one in trials) == pytest.approx(0.41)
    tagged = {"flow_runs": {"tags": {"all_": [f"passgate-run={run_id}"]}}}
    flow_runs = asked(prefect_server, "POST", "flow_runs/filter", tagged)
    assert len(flow_runs) >= 4, "it was to run on several workers"
