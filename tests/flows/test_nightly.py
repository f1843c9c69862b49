"""The nightly on a team's server: PostgreSQL, two workers, a schedule, and one worker that dies in the middle."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_killed import AGENTS, SAYS_YES, asked_of, finished, kill_tree
from tests.flows.test_deployments import prefect
from tests.flows.test_flow_runs import api
from tests.postgresql import running_postgresql
from tests.prefect_servers import started_server
from tests.processes import parent_of, process_ids
from tests.project import Project, clean_environment
from tests.unit.agents.agent_server import Says, running_agent
from tests.waiting import wait_until

K = 40


@contextmanager
def two_workers(project: Project, folder: Path) -> Iterator[list[int]]:
    """Two workers of the repository's work pool, each by its process id."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", "desk", "--name", f"worker-{number}"],
            cwd=folder,
            env={**clean_environment(), **project.environment, "PREFECT_WORKER_QUERY_SECONDS": "3"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for number in range(2)
    ]
    try:
        yield [worker.pid for worker in workers]
    finally:
        for worker in workers:
            kill_tree(worker.pid)
            worker.wait()


def busy_one(workers: list[int]) -> int:
    """The worker that runs a flow run, in a child process."""
    parents = {parent_of(one) for one in process_ids()}
    (busy,) = [worker for worker in workers if worker in parents]
    return busy


def deploy_nightly(project: Project) -> None:
    """The nightly of a repository with two tasks, every minute, as `init --prefect` deploys it."""
    assert project.passgate("init", "--prefect").returncode == 0
    for file in project.path.glob("suites/*/*.yaml"):
        file.unlink()
    for number in range(2):
        project.write(f"suites/golden/t{number}.yaml", SAYS_YES.format(name=f"t{number}"))
    gates = (project.path / "gates.yaml").read_text()
    suites = "suites: [golden, adversarial, open_ended, failure_replays]\n    blocks_on: []"
    project.write("gates.yaml", gates.replace(suites, "suites: [golden]\n    blocks_on: []"))
    deployments = (project.path / "prefect.yaml").read_text()
    request = f"request: {{agent: counting, jobs: 2, k: {K}}}"
    deployments = deployments.replace("request: {agent: oracle}", request).replace("0 2 * * *", "* * * * *")
    project.write("prefect.yaml", deployments)
    # The least that Prefect's heartbeat allows.
    automations = (project.path / "prefect-automations.yaml").read_text().replace("within: 90\n", "within: 40\n")
    project.write("prefect-automations.yaml", automations)
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Begin")
    for arguments in (
        ("work-pool", "create", "desk", "--type", "process"),
        ("automation", "create", "--from-file", "prefect-automations.yaml"),
        ("deploy", "--name", "desk-nightly"),
    ):
        done = prefect(project, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


def begun_flow_runs(project: Project) -> list[dict[str, Any]]:
    body = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "COMPLETED", "FAILED", "CRASHED"]}}}}
    found: list[dict[str, Any]] = api(project, "POST", "flow_runs/filter", body)
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_scheduled_nightly_outlives_the_worker_that_runs_it_and_repeats_no_finished_trial(tmp_path: Path) -> None:
    project = Project(tmp_path / "desk")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    with running_postgresql() as database, running_agent() as agent:
        agent.replies = [Says(pause=0.2)]
        project.write("agents.yaml", AGENTS.format(url=agent.url))
        settings = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": database}
        with started_server(tmp_path / "home", **settings) as server:
            project.environment = dict(server.environment)
            deploy_nightly(project)
            with two_workers(project, tmp_path) as workers:
                wait_until(lambda: len(finished(project)) > 5, seconds=300)
                (flow_run,) = begun_flow_runs(project)
                api(project, "POST", f"deployments/{flow_run['deployment_id']}/pause_deployment")
                kill_tree(busy_one(workers))
                before, asked_before = finished(project), len(agent.asked)
                assert len(before) < 2 * K
                state = f"flow_runs/{flow_run['id']}"
                wait_until(lambda: api(project, "GET", state)["state"]["name"] == "GatePassed", seconds=400)
        asked = asked_of(agent, asked_before)
    assert before.isdisjoint(asked), "a finished trial was run again"
    assert finished(project) == {(f"t{task}", trial) for task in range(2) for trial in range(K)}
    assert len(project.run_folders()) == 1
