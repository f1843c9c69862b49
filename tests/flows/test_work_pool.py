"""A run on a work pool of Prefect: batches as flow runs of real workers, the run kept on an S3 server."""

import json
import shutil
import textwrap
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.execution.distributed.orders import read_orders
from passgate.tasks.history.run_store import RunStore
from tests.answering import Answer, forwarded, serving
from tests.builders import task_document
from tests.flows.counting import begun, said
from tests.flows.prefect_api import a_worker, api, descendants, why_failed
from tests.flows.test_seam import GATES
from tests.object_store import ObjectStore, object_store
from tests.processes import how_to_resume
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import LIMIT, wait_until
from tests.warm import CODE

__all__ = ["object_store"]
pytestmark = pytest.mark.slow

TASKS, K = 3, 3
AGENT = """
import pathlib, time

def agent(attempt):
    folder = pathlib.Path(__file__).parent
    with (folder / "calls.log").open("a") as log:
        log.write(f"{attempt.task_id} {attempt.trial}\\n")
    while attempt.trial and (folder / "hangs").exists():
        time.sleep(0.1)
    return "no" if attempt.task_id == "t1" else "yes"
"""
NATIVE = "python:agent:agent"

# A coordinator that gives up a batch after twenty seconds: a lease is renewed every fifteen. It has as much time to
# cancel as a busy machine needs.
COORDINATOR = """
import sys
from passgate.flows import work_pool
from passgate.flows.process import supervision
from passgate.flows.process.supervisor import main
work_pool._SECONDS_TO_HOLD, work_pool._SECONDS_TO_RENEW, work_pool._SECONDS_TO_TELL = 20.0, 2.0, 1.0
supervision.SECONDS_TO_INTERRUPT = work_pool._SECONDS_TO_CANCEL = 240.0
sys.exit(main())
"""


def calls(folder: Path) -> Counter[str]:
    log = folder / "calls.log"
    return Counter(log.read_text().splitlines() if log.exists() else [])


def make_pool(project: Project, name: str, working_folder: Path | None = None) -> str:
    """Make a pool whose workers run batches in a folder, that of the project unless one is given; its name."""
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    template["variables"]["properties"]["working_dir"]["default"] = str(working_folder or project.path)
    api(project, "POST", "work_pools/", {"name": name, "type": "process", "base_job_template": template})
    return name


def batches_of(project: Project, run_id: str) -> list[dict[str, Any]]:
    """The flow runs of the batches of a run."""
    tagged = {"flow_runs": {"tags": {"all_": [f"passgate-run={run_id}"]}}}
    found: list[dict[str, Any]] = api(project, "POST", "flow_runs/filter", tagged)
    return found


def run_at(store: ObjectStore, url: str) -> str:
    """The id of the only run below a URL."""
    (run_id,) = {name.partition("/")[0] for name in store.keys(url)}
    return run_id


def has_trials(store: ObjectStore, url: str) -> bool:
    return any("/journal/" in name for name in store.keys(url))


@pytest.fixture
def repository(bare_project: Project, prefect_server: dict[str, str], object_store: ObjectStore) -> Project:
    """A gate of three tasks whose agent fails `t1`, and hangs after its first trials while a file is there."""
    bare_project.environment = {**prefect_server, **object_store.environment}
    # What its deployments are called on the server, which other tests use too.
    bare_project.write("prefect.yaml", f"name: {bare_project.path.parent.name.replace('_', '-')}\n")
    bare_project.write("gates.yaml", GATES)
    for number in range(TASKS):
        bare_project.write(f"suites/golden/t{number}.yaml", json.dumps(task_document(task_id=f"t{number}")))
    bare_project.write("agent.py", textwrap.dedent(AGENT))
    return bare_project


def test_a_killed_coordinator_is_resumed_from_an_empty_folder_and_repeats_no_finished_trial(
    repository: Project, object_store: ObjectStore, tmp_path: Path
) -> None:
    machine, other = tmp_path / "machine", Project(tmp_path / "other", repository.environment)
    for folder in (machine, other.path):
        folder.mkdir()
        shutil.copy(repository.path / "agent.py", folder)
    (machine / "hangs").touch()
    url, pool = object_store.new_url(), make_pool(repository, "killed-coordinator", machine)
    options = ("--run-store", url, "--work-pool", pool, "--jobs", "2", "--workers", "1")
    with a_worker(repository, pool, machine), begun(repository, *options, agent=NATIVE) as run:
        wait_until(lambda: run.poll() is not None or has_trials(object_store, url))
        run.kill()
    (machine / "hangs").unlink()
    run_id = run_at(object_store, url)
    kept = {f"{one.task_id} {one.trial}" for one in RunStore(f"{url}/{run_id}").read_trials()}
    with a_worker(repository, pool, machine):
        result = other.passgate("run", "ci_merge", "--resume", f"{url}/{run_id}")
    assert result.returncode == 1, result.stderr
    assert "t1" in result.stdout
    assert why_failed(other, "golden/t1").startswith(f"0/{K} trials passed; ")
    done = calls(machine)
    assert {one: done[one] for one in kept} == dict.fromkeys(kept, 1)
    assert calls(other.path) == calls(repository.path) == Counter()
    trials = RunStore(f"{url}/{run_id}").read_trials()
    every = [f"t{number} {trial}" for number in range(TASKS) for trial in range(K)]
    assert sorted(f"{one.task_id} {one.trial}" for one in trials) == sorted(done) == every
    assert {one["parameters"]["store"] for one in batches_of(repository, run_id)} == {f"{url}/{run_id}"}


def test_what_a_work_pool_needs_is_said(repository: Project, object_store: ObjectStore) -> None:
    run = ("run", "ci_merge", "--agent", NATIVE, "--work-pool", "nowhere")
    result = repository.passgate(*run)
    assert (result.returncode, "--work-pool needs --run-store" in result.stderr) == (2, True), result.stderr
    url = object_store.new_url()
    make_pool(repository, "nowhere-else")
    result = repository.passgate(*run, "--run-store", url)
    assert result.returncode == 2, result.stderr
    assert "has no work pool 'nowhere'; it has nowhere-else" in result.stderr
    remedy = "(`prefect work-pool ls`): make it with `prefect work-pool create nowhere`, or correct --work-pool\n"
    assert result.stderr.endswith(remedy)
    assert "--resume" not in result.stderr
    assert object_store.keys(url) == []
    assert not list(repository.path.glob(".passgate/runs/*"))


def test_a_pool_without_workers_is_told_and_a_signal_cancels_what_waits_there_and_leaves_other_pools_their_deployment(
    repository: Project, object_store: ObjectStore
) -> None:
    repository.write("prefect.yaml", "name: two-pools\n")
    for pool in ("first-pool", "second-pool"):
        url = object_store.new_url()
        options = ("--run-store", url, "--work-pool", make_pool(repository, pool))
        told = f"the work pool {pool} has no worker; the run waits for `prefect worker start --pool {pool}`"
        # As in many images: messages must not wait for the end of the process.
        unbuffered = {"PYTHONUNBUFFERED": "1"}
        with begun(repository, *options, agent=NATIVE, command=(*CODE, COORDINATOR), **unbuffered) as run:
            wait_until(lambda run=run, told=told: run.poll() is not None or told in said(repository))  # type: ignore[misc]
            run.terminate()
            assert run.wait(timeout=300) == 130, said(repository)
        wait_until_cancelled(repository, run_at(object_store, url))
    wanted = {"deployments": {"name": {"like_": "two-pools"}}}
    assert {one["name"]: one["work_pool_name"] for one in api(repository, "POST", "deployments/filter", wanted)} == {
        "two-pools-batch": "first-pool",
        "two-pools-second-pool-batch": "second-pool",
    }


def test_a_flow_run_that_is_made_while_a_run_ends_is_cancelled_too(
    repository: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    made, ended = threading.Event(), threading.Event()

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        answered = forwarded(prefect_server["PREFECT_API_URL"], request, body)
        if request.path.endswith("/create_flow_run"):
            made.set()
            ended.wait(LIMIT)
        return answered

    options = ("--run-store", f"file://{tmp_path}/runs", "--work-pool", make_pool(repository, "late-answers"))
    with serving(answer) as address:
        through = {"PREFECT_API_URL": f"{address}/api"}
        with begun(repository, *options, agent=NATIVE, command=(*CODE, COORDINATOR), **through) as run:
            assert made.wait(LIMIT), said(repository)
            run.terminate()
            (folder,) = (one for one in (tmp_path / "runs").iterdir() if one.is_dir())
            store = RunStore(f"file://{folder}")
            wait_until(lambda: (orders := read_orders(store)) is not None and orders.ended)
            ended.set()
            assert run.wait(timeout=300) == 130, said(repository)
    wait_until_cancelled(repository, folder.name)


def wait_until_cancelled(project: Project, run_id: str) -> None:
    wait_until(lambda: {one["state_type"] for one in batches_of(project, run_id)} == {"CANCELLED"})


def test_only_a_batch_whose_machine_is_gone_is_handed_out_again(repository: Project, tmp_path: Path) -> None:
    pool, hangs = make_pool(repository, "lost-machine"), repository.path / "hangs"
    hangs.touch()
    options = ("--jobs", "1", "--workers", "1", "--run-store", f"file://{tmp_path}/runs", "--work-pool", pool)
    with begun(repository, *options, agent=NATIVE, command=(*CODE, COORDINATOR)) as run:
        with a_worker(repository, pool, repository.path):
            wait_until(lambda: run.poll() is not None or any(call.endswith("1") for call in calls(repository.path)))
        before = calls(repository.path)
        hangs.unlink()
        with a_worker(repository, pool, repository.path):
            assert run.wait(timeout=300) == 1, said(repository)
    (folder,) = [one for one in (tmp_path / "runs").iterdir() if one.is_dir()]
    assert len(batches_of(repository, folder.name)) == 2
    done = calls(repository.path)
    assert len(done) == TASKS * K
    assert done.total() <= TASKS * K + 1, "more was run again than was in flight"
    assert 0 < len(before) < TASKS * K


def test_a_worker_that_cannot_run_batches_says_why(repository: Project, tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    pool = make_pool(repository, "without-the-agent", machine)
    run = ("run", "ci_merge", "--agent", NATIVE, "--run-store", f"file://{tmp_path}/runs", "--work-pool", pool)
    with a_worker(repository, pool, machine):
        without_the_agent = repository.passgate(*run, "--workers", "1")
        (machine / "passgate.py").write_text("raise ImportError('no passgate here')")
        without_passgate = repository.passgate(*run, "--workers", "1")
    assert (without_the_agent.returncode, without_passgate.returncode) == (2, 3), without_passgate.stderr
    assert "agent" in without_the_agent.stderr.splitlines()[-1], without_the_agent.stderr
    message = without_passgate.stderr.splitlines()[-1]
    assert "lost its worker 3 times: its flow run " in message
    assert "has ended without an outcome as Crashed: Process exited with status code: 1" in message


def test_a_signal_ends_a_run_on_a_work_pool_and_its_batches(repository: Project, object_store: ObjectStore) -> None:
    pool, url = make_pool(repository, "ended-by-a-signal"), object_store.new_url()
    (repository.path / "hangs").touch()
    options = ("--run-store", url, "--work-pool", pool, "--jobs", "2", "--workers", "1")
    with a_worker(repository, pool, repository.path) as worker:
        with begun(repository, *options, agent=NATIVE, command=(*CODE, COORDINATOR)) as run:
            wait_until(lambda: run.poll() is not None or has_trials(object_store, url))
            run.terminate()
            assert run.wait(timeout=300) == 130, said(repository)
        wait_until(lambda: descendants(worker) == [])
    assert said(repository).splitlines()[-1].endswith(how_to_resume(repository.path))
    assert 0 < len(calls(repository.path)) < TASKS * K


def test_the_cost_cap_holds_over_the_workers_of_a_pool(
    repository: Project, object_store: ObjectStore, upstream: ScriptedUpstream
) -> None:
    upstream.says(Says("yes"))  # for a cent
    repository.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    repository.environment |= {"OPENAI_BASE_URL": upstream.openai_base_url, "OPENAI_API_KEY": "sk-any"}
    pool, url = make_pool(repository, "cost-cap"), object_store.new_url()
    run = ("run", "ci_merge", "--agent", "openai:m", "--run-store", url, "--work-pool", pool)
    limits = ("--k", "4", "--jobs", "2", "--workers", "2", "--max-cost", "0.055")
    with a_worker(repository, pool, repository.path):
        result = repository.passgate(*run, *limits)
    assert result.returncode == 3, result.stdout + result.stderr
    run_id = run_at(object_store, url)
    trials = RunStore(f"{url}/{run_id}").read_trials()
    assert upstream.count == 5, "the shares pay for two calls each, and what is left over pays for one more"
    assert sum(one.cost for one in trials) == pytest.approx(0.05)
    assert len(batches_of(repository, run_id)) >= 2, "it was to run in several processes"
