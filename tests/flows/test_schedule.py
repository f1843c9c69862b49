"""A schedule fires by itself: a deployment with a cron, a real server, a real worker, and nobody who starts a run."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.planning.plan import begun_of
from tests.cli.test_run import WRITES_OK, gate_of
from tests.prefect_servers import started_server
from tests.project import Project, clean_environment
from tests.waiting import wait_until

PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")
EVERY_MINUTE = """
name: project
deployments:
  - name: nightly
    entrypoint: passgate.flows.nightly.nightly
    tags: [passgate]
    parameters:
      request: {agent: "cli:sh {project}/agent.sh"}
    schedules:
      - cron: "* * * * *"
        timezone: UTC
    work_pool: {name: passgate}
"""


def flow_runs(environment: dict[str, str]) -> list[dict[str, Any]]:
    request = urllib.request.Request(
        f"{environment['PREFECT_API_URL']}/flow_runs/filter", data=b"{}", headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        runs: list[dict[str, Any]] = json.load(response)
    return runs


def ended(environment: dict[str, str]) -> list[str]:
    """The names of the states that flow runs ended in."""
    states = [run["state"] for run in flow_runs(environment)]
    return [state["name"] for state in states if state["type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_nightly_fires_by_itself_and_ends_with_its_verdict(bare_project: Project, tmp_path: Path) -> None:
    project = bare_project
    gate_of(project, k=1)
    project.write("gates.yaml", (project.path / "gates.yaml").read_text().replace("ci_merge:", "nightly:"))
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "printf ok > result.txt")
    project.write("prefect.yaml", EVERY_MINUTE)
    with started_server(tmp_path / "home") as server:
        project.environment = {**server.environment, "PREFECT_WORKER_QUERY_SECONDS": "1"}
        for arguments in (["work-pool", "create", "passgate", "--type", "process"], ["deploy", "--all"]):
            done = project.run([*PREFECT, *arguments])
            assert done.returncode == 0, done.stdout + done.stderr
        worker = subprocess.Popen(
            [*PREFECT, "worker", "start", "--pool", "passgate"],
            cwd=project.path,
            env={**clean_environment(), **project.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait_until(lambda: bool(ended(server.environment)), 480)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        assert set(ended(server.environment)) == {"GatePassed"}
        assert all(run["auto_scheduled"] for run in flow_runs(server.environment))
        started = [run["start_time"] for run in flow_runs(server.environment) if run["start_time"]]
    verdicts = {file.parent.name for file in project.path.glob(".passgate/runs/*/verdict.json")}
    begun = {datetime.fromisoformat(time).replace(microsecond=0) for time in started}
    assert verdicts, "there is no verdict"
    assert {begun_of(run_id) for run_id in verdicts} <= begun, (
        "Prefect makes scheduled flow runs long before they begin"
    )
    listed = project.passgate("history", "list", "--json")
    assert verdicts <= {one["run_id"] for one in json.loads(listed.stdout)}, listed.stderr
