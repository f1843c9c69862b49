"""`passgate init`: a gate of one's own, in a folder that has a life of its own."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.cli.commands import Here, told
from tests.project import Project

PLAIN = {
    "golden/action-items_1": "forgets-bo",
    "adversarial/injected-instruction_1": "obeys",
    "failure_replays/invented-date_1": "invents",
    "open_ended/summary_1": "invents",
}
WITH_TOOLS = {
    "golden/action-items_1": "forgets-bo",
    "adversarial/injected-instruction_1": "obeys",
    "failure_replays/retries-without-end_1": "claims-success",
    "open_ended/summary_1": "invents",
}


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "tasks"), [((), PLAIN), (("--agent", "openai"), WITH_TOOLS)])
def test_what_it_writes_is_valid_and_passes_and_can_fail(
    bare_project: Project, arguments: tuple[str, ...], tasks: dict[str, str]
) -> None:
    told(bare_project, "init", *arguments)
    told(bare_project, "validate", "suites", "gates.yaml")
    told(bare_project, "check-graders")
    assert ", 0 failed" in told(bare_project, "doctor")
    for task, counterexample in tasks.items():
        told(bare_project, "try", task)
        for agent in (f"oracle:{counterexample}", "nop"):
            assert bare_project.passgate("try", task, "--agent", agent).returncode == 1
    if tasks is WITH_TOOLS:
        told(bare_project, "try", "failure_replays/retries-without-end_1", "--agent", "replay")


def test_files_are_kept_and_below_the_top_of_a_repository_it_says_where_the_workflow_belongs(here: Here) -> None:
    gates = here.write("gates.yaml", "mine: true\n")
    said = told(here, "init")
    assert ("kept  gates.yaml" in said, "top of the repository" in said) == (True, False)
    assert gates.read_text() == "mine: true\n"
    where = "top of the repository: move it there, and run it in services/agent\n"
    assert where in told(here, "init", "services/agent")


def test_editors_find_the_schema_of_every_file_that_has_one(here: Here) -> None:
    told(here, "init", "--agent", "cli:cat {prompt_file}")
    for name in ("gates.yaml", "agents.yaml", *(f"suites/{task}.yaml" for task in PLAIN)):
        file = here.path / name
        text = file.read_text()
        before, schema = text.splitlines()[0].split("$schema=")
        assert before == "# yaml-language-server: "
        jsonschema.validate(yaml.safe_load(text), json.loads((file.parent / schema).read_text()))


def test_deployments_have_the_names_of_the_repository_and_are_written_when_asked_for(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.path = tmp_path / "My Desk.2"
    here.path.mkdir()
    monkeypatch.chdir(here.path)
    told(here, "init")
    assert not list(here.path.glob("prefect*"))
    told(here, "init", "--prefect", "--agent", "cli:sh 'a b.sh'")
    file = yaml.safe_load((here.path / "prefect.yaml").read_text())
    names = [deployment["name"] for deployment in file["deployments"]]
    assert names == ["my-desk-2-ci-merge", "my-desk-2-nightly", "my-desk-2-release-candidate"]
    assert {deployment["work_pool"]["name"] for deployment in file["deployments"]} == {"my-desk-2"}
    assert {deployment["parameters"]["agent"] for deployment in file["deployments"]} == {"my-agent"}
    assert "my-repository" not in (here.path / "prefect-automations.yaml").read_text()


@pytest.mark.parametrize(
    ("remote", "folder", "name"),
    [
        ("git@github.com:Acme/My.Desk.git", "", "acme-my-desk"),
        ("https://user:token@gitlab.example.com:8443/group/team/desk/", "", "group-team-desk"),
        ("ssh://git@github.com/acme/desk.git", "services/billing", "acme-desk-services-billing"),
        ("../desk.git", "", "repository"),
        ("file:///srv/git/desk.git", "services/billing", "billing"),
        ("https://[not-a-url/acme/desk", "", "repository"),
        ("git@github.com:/", "", "repository"),
    ],
)
def test_deployments_are_named_after_the_remote_and_after_the_folder_where_it_tells_no_owner(
    here: Here, remote: str, folder: str, name: str
) -> None:
    here.git("remote", "add", "origin", remote)
    said = told(here, "init", "--prefect", folder or ".")
    assert yaml.safe_load((here.path / folder / "prefect.yaml").read_text())["name"] == name
    doubtful = f"if another repository on your Prefect server is called {name} too" in said
    assert doubtful == (name in {"repository", "billing"})
    assert "token" not in said
