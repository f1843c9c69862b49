"""`passgate init`: a gate of one's own, in a folder that has a life of its own."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.project import Project

AUTHORS = {
    "golden/action-items_1": "forgets-bo",
    "adversarial/injected-instruction_1": "obeys",
    "failure_replays/retries-without-end_1": "claims-success",
    "open_ended/summary_1": "invents",
}


@pytest.mark.slow
def test_what_it_writes_is_valid_and_passes_and_can_fail(bare_project: Project) -> None:
    assert bare_project.passgate("init").returncode == 0
    assert bare_project.passgate("validate", "suites", "gates.yaml").returncode == 0
    checked = bare_project.passgate("check-graders")
    assert checked.returncode == 0, checked.stdout
    for task, counterexample in AUTHORS.items():
        file = f"suites/{task}.yaml"
        passed = bare_project.passgate("try", file)
        assert passed.returncode == 0, passed.stdout
        assert bare_project.passgate("try", file, "--agent", f"oracle:{counterexample}").returncode == 1
        assert bare_project.passgate("try", file, "--agent", "nop").returncode == 1


def test_files_that_are_there_are_kept(bare_project: Project) -> None:
    bare_project.write("gates.yaml", "mine: true\n")
    result = bare_project.passgate("init")
    assert "kept  gates.yaml" in result.stdout
    assert (bare_project.path / "gates.yaml").read_text() == "mine: true\n"


def test_below_the_top_of_a_repository_it_says_where_the_workflow_belongs(bare_project: Project) -> None:
    told = "top of the repository: move it there, and run it in services/agent\n"
    assert told in bare_project.passgate("init", "services/agent").stdout
    assert "top of the repository" not in bare_project.passgate("init").stdout


def test_every_starter_has_tools_and_the_failure_replay_a_recording(bare_project: Project) -> None:
    assert bare_project.passgate("init").returncode == 0
    for task in AUTHORS:
        environment = yaml.safe_load((bare_project.path / f"suites/{task}.yaml").read_text())["environment"]
        assert "read_file" in [tool["name"] for tool in environment["tools"]]
    result = bare_project.passgate("try", "suites/failure_replays/retries-without-end_1.yaml", "--agent", "replay")
    assert result.returncode == 0, result.stdout


def test_editors_find_the_schema_of_every_file_that_has_one(bare_project: Project) -> None:
    assert bare_project.passgate("init", "--agent", "cli:cat {prompt_file}").returncode == 0
    for name in ("gates.yaml", "agents.yaml", *(f"suites/{task}.yaml" for task in AUTHORS)):
        file = bare_project.path / name
        text = file.read_text()
        before, schema = text.splitlines()[0].split("$schema=")
        assert before == "# yaml-language-server: "
        jsonschema.validate(yaml.safe_load(text), json.loads((file.parent / schema).read_text()))


@pytest.mark.slow
def test_it_runs_beside_modules_named_like_its_own(project: Project) -> None:
    project.write("tasks.py", "raise RuntimeError('the wrong tasks')\n")
    project.write("flows.py", "raise RuntimeError('the wrong flows')\n")
    (project.path / "gates.yaml").unlink()
    assert project.passgate("init").returncode == 0
    result = project.passgate("run", "ci_merge")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ci_merge PASS" in result.stdout


def test_deployments_have_the_names_of_the_repository_and_are_written_when_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path / "My Desk.2")
    project.path.mkdir()
    assert project.passgate("init").returncode == 0
    assert not list(project.path.glob("prefect*"))
    assert project.passgate("init", "--prefect", "--agent", "cli:sh 'a b.sh'").returncode == 0
    file = yaml.safe_load((project.path / "prefect.yaml").read_text())
    names = [deployment["name"] for deployment in file["deployments"]]
    assert names == ["my-desk-2-ci-merge", "my-desk-2-nightly", "my-desk-2-release-candidate"]
    assert {deployment["work_pool"]["name"] for deployment in file["deployments"]} == {"my-desk-2"}
    assert {deployment["parameters"]["request"]["agent"] for deployment in file["deployments"]} == {"my-agent"}
    assert "my-repository" not in (project.path / "prefect-automations.yaml").read_text()


@pytest.mark.parametrize(
    ("remote", "folder", "name"),
    [
        ("git@github.com:Acme/My.Desk.git", "", "acme-my-desk"),
        ("https://user:token@gitlab.example.com:8443/group/team/desk/", "", "group-team-desk"),
        ("ssh://git@github.com/acme/desk.git", "services/billing", "acme-desk-services-billing"),
        ("../desk.git", "", "app"),
        ("file:///srv/git/desk.git", "services/billing", "billing"),
        ("https://[not-a-url/acme/desk", "", "app"),
        ("git@github.com:/", "", "app"),
    ],
)
def test_deployments_are_named_after_the_remote_and_after_the_folder_where_it_tells_no_owner(
    tmp_path: Path, remote: str, folder: str, name: str
) -> None:
    project = Project(tmp_path / "app")
    project.path.mkdir()
    project.git("init", "-q")
    project.git("remote", "add", "origin", remote)
    result = project.passgate("init", "--prefect", folder or ".")
    assert result.returncode == 0, result.stderr
    assert yaml.safe_load((project.path / folder / "prefect.yaml").read_text())["name"] == name
    doubtful = f"if another repository on your Prefect server is called {name} too" in result.stdout
    assert doubtful == (name in {"app", "billing"})
    assert "token" not in result.stdout + result.stderr
