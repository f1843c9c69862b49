"""The workflow that `passgate init` writes: read as GitHub reads it, its commands really run."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from passgate import __version__
from passgate.tasks.model.task import GateName
from tests.docs.commands import COMMANDS
from tests.project import Project
from tests.schema_store import published_schema

WORKFLOW = ".github/workflows/passgate.yaml"


def workflow_of(project: Project, *arguments: str) -> dict[str, Any]:
    result = project.passgate("init", *arguments)
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = yaml.safe_load((project.path / WORKFLOW).read_text())
    return content


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def script(workflow: dict[str, Any], name: str) -> str:
    """The commands of a step, as `bash -e` gets them."""
    (step,) = [step for step in steps_of(workflow) if step.get("name") == name]
    return str(step["run"])


def run_script(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_is_valid_by_the_published_schema(bare_project: Project) -> None:
    workflow_of(bare_project)
    # `on` is a boolean in YAML 1.1, which PyYAML reads; the schema's list of images is older than this one.
    text = (bare_project.path / WORKFLOW).read_text().replace("\non:\n", "\n'on':\n").replace("-24.04", "-22.04")
    jsonschema.validate(yaml.safe_load(text), published_schema("https://json.schemastore.org/github-workflow.json"))


def test_without_an_agent_it_fails_and_says_that_one_is_to_be_named(bare_project: Project) -> None:
    workflow = workflow_of(bare_project)
    assert workflow["env"]["AGENT"] == ""
    assert "oracle" not in (bare_project.path / WORKFLOW).read_text()
    assert not (bare_project.path / "agents.yaml").exists()
    first = script(workflow, "Is an agent named?")
    assert steps_of(workflow)[0]["run"] == first, "before anything is installed"
    result = run_script(first, bare_project.path, AGENT=workflow["env"]["AGENT"])
    assert result.returncode == 1
    assert "name your agent" in result.stdout


def test_an_agent_that_is_named_is_the_one_of_the_workflow(bare_project: Project) -> None:
    agent = """cli:sh -c 'cat "$1"' sh {prompt_file}"""
    workflow = workflow_of(bare_project, "--agent", agent)
    assert workflow["env"]["AGENT"] == "my-agent"
    entries = yaml.safe_load((bare_project.path / "agents.yaml").read_text())["agents"]
    assert entries == {"my-agent": {"agent": agent}}
    assert run_script(script(workflow, "Is an agent named?"), bare_project.path, AGENT="my-agent").returncode == 0
    assert bare_project.passgate("validate", "suites", "gates.yaml", "agents.yaml").returncode == 0
    assert bare_project.passgate("doctor", "my-agent").returncode == 0


@pytest.mark.parametrize(("agent", "named"), [("theirs", "theirs"), ("cli:sh {prompt}", "cli:sh {prompt}")])
def test_agents_that_have_names_keep_them(bare_project: Project, agent: str, named: str) -> None:
    content = "agents: {theirs: {agent: 'cli:true'}}\n"
    bare_project.write("agents.yaml", content)
    assert workflow_of(bare_project, "--agent", agent)["env"]["AGENT"] == named
    assert (bare_project.path / "agents.yaml").read_text() == content


@pytest.mark.parametrize("agent", ["oracle", "nop", "nobody", "cli:no-such-program-here", "cli:sh {promt}"])
def test_an_agent_that_cannot_be_one_is_refused_and_nothing_is_written(bare_project: Project, agent: str) -> None:
    assert bare_project.passgate("init", "--agent", agent).returncode == 2
    assert [path.name for path in bare_project.path.iterdir()] == [".git"]


def test_it_pins_what_it_installs_and_may_write_only_where_no_agent_runs(bare_project: Project) -> None:
    workflow = workflow_of(bare_project)
    actions = [step["uses"] for step in steps_of(workflow) if "uses" in step]
    assert actions
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions), actions
    assert script(workflow, "Install passgate") == f"pip install 'passgate[graders]=={__version__}'"
    assert workflow["permissions"] == {"contents": "read"}
    writing = [name for name, job in workflow["jobs"].items() if "permissions" in job]
    assert writing == ["comment", "keep-history"]
    assert not any("passgate run" in str(workflow["jobs"][name]) for name in writing)
    assert workflow["concurrency"]["cancel-in-progress"] is True


def test_its_events_and_commands_are_known(bare_project: Project) -> None:
    workflow = workflow_of(bare_project)
    events = workflow[True]  # YAML 1.1 reads `on` so
    assert set(events) == {"pull_request", "push", "schedule"}
    assert len(events["schedule"][0]["cron"].split()) == 5
    assert set(re.findall(r"'(\w+)'", workflow["env"]["GATE"])) - {"schedule"} == {GateName.NIGHTLY, GateName.CI_MERGE}
    words = script(workflow, "Run the gate").split()
    assert words[:2] == ["passgate", "run"]
    options = {flag for parameter in COMMANDS["run"].params for flag in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options
    for text in (step["run"] for step in steps_of(workflow) if "run" in step):
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
        assert "${{" not in text, "expressions in commands are an injection"


def test_runs_side_by_side_lose_no_history(bare_project: Project, tmp_path: Path) -> None:
    workflow = workflow_of(bare_project)
    fetch, add = script(workflow, "Fetch the history"), script(workflow, "Add it to the branch")
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    variables = {"REPOSITORY": str(remote), "HISTORY_BRANCH": "passgate-history"}

    def runs(number: int) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / f"job-{number}"
        file = folder / f"new/trials/suite=golden/day=2026-01-31/run-{number}.parquet"
        file.parent.mkdir(parents=True)
        file.write_text(f"of run {number}")
        return run_script(add, folder, GITHUB_RUN_ID=str(number), **variables)

    begun = run_script(fetch, tmp_path / "first", **variables)
    assert (begun.returncode, begun.stdout) == (0, "no history yet\n"), begun.stderr
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(runs, range(3)):
            assert result.returncode == 0, result.stderr
    later = run_script(fetch, tmp_path / "later", **variables)
    assert later.returncode == 0, later.stderr
    history = tmp_path / "later/.passgate/history"
    assert sorted(path.name for path in history.rglob("*.parquet")) == [f"run-{number}.parquet" for number in range(3)]
    assert not (history / ".git").exists()
    gone = run_script(fetch, tmp_path / "gone", **{**variables, "REPOSITORY": str(tmp_path / "gone.git")})
    assert gone.returncode not in {0, 2}, "a history that cannot be had is not an empty one"


def test_only_the_files_of_the_run_are_new_history(bare_project: Project) -> None:
    collect = script(workflow_of(bare_project), "Collect the new history")
    state = bare_project.path / ".passgate"
    bare_project.write(".passgate/history/trials/old.parquet", "")
    bare_project.write(".passgate/fetched", "")
    os.utime(state / "history/trials/old.parquet", (1, 1))
    os.utime(state / "fetched", (2, 2))
    bare_project.write(".passgate/history/trials/day=1/new.parquet", "")
    assert run_script(collect, bare_project.path).returncode == 0
    assert [path.name for path in (state / "new").rglob("*") if path.is_file()] == ["new.parquet"]
