"""The nightly on a team's server: PostgreSQL, two workers, a schedule, and one worker that dies in the middle."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.flows.counting import asked, finished, write_counting
from tests.flows.prefect_api import a_worker, api, engines_of, kill_tree, succeeded
from tests.postgresql import running_postgresql
from tests.prefect_servers import started_server
from tests.processes import parent_of
from tests.project import Project
from tests.unit.agents.agent_server import AgentServer, Says, running_agent
from tests.waiting import wait_until

K = 10


def deploy_nightly(project: Project, agent: AgentServer) -> None:
    """The nightly of a repository with two tasks, every few seconds, as `init --prefect` deploys it."""
    assert project.passgate("init", "--prefect").returncode == 0
    for file in project.path.glob("suites/*/*.yaml"):
        file.unlink()
    gates = (project.path / "gates.yaml").read_text()
    write_counting(project, agent, tasks=2, k=K, jobs=2)
    suites = r"suites: \[golden, adversarial, failure_replays\].*\n    blocks_on: \[\]"
    gates, replaced = re.subn(suites, "suites: [golden]\n    blocks_on: []", gates)
    assert replaced == 1
    project.write("gates.yaml", gates)
    deployments = (project.path / "prefect.yaml").read_text()
    request = f"parameters: {{agent: counting, jobs: 2, k: {K}}}"
    deployments = deployments.replace("parameters: {agent: oracle}", request)
    deployments = deployments.replace('- cron: "0 2 * * *"\n        timezone: UTC', "- interval: 5")
    project.write("prefect.yaml", deployments)
    # The least that Prefect's heartbeat allows.
    automations = (project.path / "prefect-automations.yaml").read_text().replace("within: 90\n", "within: 40\n")
    project.write("prefect-automations.yaml", automations)
    project.git("add", ".")
    project.git("commit", "-q", "-m", "Begin")
    succeeded(project, "work-pool", "create", "desk", "--type", "process")
    succeeded(project, "automation", "create", "--from-file", "prefect-automations.yaml")
    succeeded(project, "deploy", "--name", "desk-nightly")


def begun_flow_runs(project: Project) -> list[dict[str, Any]]:
    body = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "COMPLETED", "FAILED", "CRASHED"]}}}}
    found: list[dict[str, Any]] = api(project, "POST", "flow_runs/filter", body)
    return found


@pytest.mark.slow
def test_a_scheduled_nightly_outlives_the_worker_that_runs_it_and_repeats_no_finished_trial(tmp_path: Path) -> None:
    project = Project(tmp_path / "desk")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    with ExitStack() as stack:
        database = stack.enter_context(running_postgresql())
        agent = stack.enter_context(running_agent())
        settings = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": database}
        project.environment = stack.enter_context(started_server(tmp_path / "home", **settings)).environment
        # After some trials the agent hangs until the worker is dead.
        agent.replies = [*[Says()] * 6, Says(pause=600)]
        deploy_nightly(project, agent)
        for number in range(2):
            stack.enter_context(a_worker(project, "desk", tmp_path, "--name", f"worker-{number}"))
        wait_until(lambda: begun_flow_runs(project))
        (flow_run,) = begun_flow_runs(project)
        api(project, "POST", f"deployments/{flow_run['deployment_id']}/pause_deployment")
        wait_until(lambda: len(finished(project)) == 6)
        agent.replies, before, asked_before = [Says()], finished(project), len(agent.asked)
        kill_tree(parent_of(*engines_of(flow_run)))
        state = f"flow_runs/{flow_run['id']}"
        wait_until(lambda: api(project, "GET", state)["state"]["name"] == "GatePassed", seconds=400)
    assert before.isdisjoint(asked(agent, asked_before)), "a finished trial was run again"
    assert finished(project) == {(f"t{task}", trial) for task in range(2) for trial in range(K)}
    assert len(project.run_folders()) == 1
