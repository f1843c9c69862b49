"""Two repositories on one Prefect server: folders of one name, with deployments and work pools of their own."""

import shutil
from pathlib import Path

import pytest

from tests.flows.prefect_api import api, flow_run_of, succeeded
from tests.gates import WRITES_OK, gate_of
from tests.project import Project

pytestmark = pytest.mark.slow
GATES = ("ci-merge", "nightly", "release-candidate")


def repository_of(owner: str, folder: Path, server: dict[str, str]) -> Project:
    """A clone of the repository `app` of an owner, with a merge gate of one task that its agent passes."""
    project = Project(folder / owner / "app", dict(server))
    project.path.mkdir(parents=True)
    project.git("init", "-q", "-b", "main")
    project.git("remote", "add", "origin", f"git@github.com:{owner}/app.git")
    project.write("agent.sh", "printf ok > result.txt")
    done = project.passgate("init", "--prefect", "--agent", "cli:sh {project}/agent.sh")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(project.path / "suites")
    gate_of(project, k=1)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name=f"of-{owner}"))
    return project


def test_repositories_whose_folders_have_one_name_keep_their_deployments_and_run_their_own_gates(
    prefect_server: dict[str, str], tmp_path: Path
) -> None:
    projects = {owner: repository_of(owner, tmp_path, prefect_server) for owner in ("acme", "zenith")}
    for owner, project in projects.items():
        api(project, "POST", "work_pools/", {"name": f"{owner}-app", "type": "process"})
        succeeded(project, "deploy", "--all")
    filed = {"deployments": {"name": {"like_": "-app-"}}}
    deployments = {one["name"]: one for one in api(projects["acme"], "POST", "deployments/filter", filed)}
    assert set(deployments) == {f"{owner}-app-{gate}" for owner in projects for gate in GATES}
    for owner, project in projects.items():
        assert str(project.path) in str(deployments[f"{owner}-app-nightly"]["pull_steps"])
    # What the later repository has deployed would be run here if it had taken the place.
    first = projects["acme"]
    api(first, "POST", f"deployments/{deployments['acme-app-ci-merge']['id']}/create_flow_run", {})
    succeeded(first, "worker", "start", "--pool", "acme-app", "--run-once")
    (folder,) = first.run_folders()
    assert "of-acme" in (folder / "plan.json").read_text()
    state = flow_run_of(first)["state"]
    assert state["name"] == "GatePassed", state["message"]
    assert folder.name in state["message"]
