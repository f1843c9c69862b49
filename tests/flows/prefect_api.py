"""What a test asks a Prefect server, and the commands and workers of Prefect that it starts."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from tests.processes import parent_of, process_ids
from tests.project import Project
from tests.waiting import LIMIT, wait_until
from tests.warm import popen

PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")


def api(project: Project, method: str, path: str, content: Any = None) -> Any:
    """What the server of a project answers; a busy one is asked again."""
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        url = f"{project.environment['PREFECT_API_URL']}/{path}"
        answers.append(httpx.request(method, url, json=content, timeout=LIMIT))
        return answers[-1].status_code < httpx.codes.INTERNAL_SERVER_ERROR

    wait_until(is_answered)
    answers[-1].raise_for_status()
    return answers[-1].json() if answers[-1].content else None


def flow_run_of(project: Project, run_id: str = "") -> dict[str, Any]:
    """The newest flow run of a run of a project; of its only run unless one is given."""
    return flow_runs_of(project, run_id)[0]


def flow_runs_of(project: Project, run_id: str = "") -> list[dict[str, Any]]:
    """The flow runs of a run, the newest first. The server has those of other tests too."""
    if not run_id:
        (folder,) = project.run_folders()
        run_id = folder.name
    body = {
        "flows": {"name": {"any_": [run_id.split("-")[1]]}},
        "flow_runs": {"start_time": {"is_null_": False}},
        "sort": "START_TIME_DESC",
    }
    return [one for one in api(project, "POST", "flow_runs/filter", body) if _is_of(one, run_id)]


def _is_of(flow_run: dict[str, Any], run_id: str) -> bool:
    """Whether a flow run was told this run, or has begun it: then the run's id ends as that of the flow run."""
    given = flow_run["parameters"].get("run")
    return run_id in str(given) or UUID(flow_run["id"]).hex.endswith(run_id.split("-")[2])


def why_failed(project: Project, name: str) -> str:
    """The message of the failed task run of this name, of the only run of a project, once the server has it."""
    wanted = {
        "flow_runs": {"id": {"any_": [flow_run_of(project)["id"]]}},
        "task_runs": {"name": {"any_": [name]}, "state": {"name": {"any_": ["TaskFailed"]}}},
    }
    found: list[dict[str, Any]] = []

    def is_recorded() -> bool:
        found[:] = api(project, "POST", "task_runs/filter", wanted)
        return bool(found) and found[0]["state"] is not None

    wait_until(is_recorded)
    return str(found[0]["state"]["message"])


def prefect(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.run([*PREFECT, *arguments])


def succeeded(project: Project, *arguments: str) -> str:
    """What a command of Prefect prints that has to succeed."""
    done = prefect(project, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def a_worker(project: Project, pool: str, folder: Path, *options: str, **environment: str) -> Iterator[int]:
    """A worker of a pool, started in a folder; gives its process id. At the end it is gone as if its machine was lost:
    nobody tells Prefect.
    """
    worker = popen(
        [*PREFECT, "worker", "start", "--pool", pool, *options],
        cwd=folder,
        env=project.full_environment(**environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield worker.pid
    finally:
        kill_tree(worker.pid)
        worker.wait()


def engines_of(flow_run: dict[str, Any]) -> list[int]:
    """The process in which a worker runs the code of a flow run, while it is there."""
    return processes_of(flow_run, "prefect.engine")


def processes_of(flow_run: dict[str, Any], command: str = "") -> list[int]:
    """The processes in which a worker runs a flow run, while they are there; of a command if that is given."""
    named = f"PREFECT__FLOW_RUN_ID={flow_run['id']}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if named in (place / "environ").read_bytes() and command.encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def descendants(process_id: int) -> list[int]:
    """The processes that come from a process."""
    parents = {child: parent_of(child) for child in process_ids()}
    found = [process_id]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def kill_tree(process_id: int | None) -> None:
    """Kill a process and all that come from it, none of which gets to clean up."""
    assert process_id is not None
    for one in [process_id, *descendants(process_id)]:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
