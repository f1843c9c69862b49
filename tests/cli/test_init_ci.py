"""The CI files that `passgate init` writes: read as GitHub and GitLab read them, their commands really run."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml

from passgate import __version__
from passgate.flows.cli.repository import own_version
from passgate.tasks.model.task import GateName
from tests.cli.commands import Here, exits, told
from tests.docs.commands import COMMANDS
from tests.docs.examples import GITLAB_JOBS
from tests.schema_store import published_schema

WORKFLOW = ".github/workflows/passgate.yaml"
JOBS = ".gitlab/passgate.yml"
Document = dict[str, Any]


def read(here: Here, name: str) -> Any:
    return yaml.safe_load((here.path / name).read_text())


def workflow_of(here: Here, *arguments: str) -> Any:
    told(here, "init", *arguments)
    return read(here, WORKFLOW)


@pytest.fixture
def workflow(here: Here) -> Any:
    """The workflow of GitHub without an agent."""
    return workflow_of(here)


def jobs_of(here: Here, *arguments: str) -> Any:
    told(here, "init", "--ci", "gitlab", *arguments)
    return read(here, JOBS)


def steps_of(workflow: Document) -> list[Document]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def script(workflow: Document, name: str) -> str:
    """The commands of a step, as `bash -e` gets them."""
    (step,) = [step for step in steps_of(workflow) if step.get("name") == name]
    return str(step["run"])


def run_script(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The commands of a job, as a CI service runs them."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def run_job(job: Document, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The commands of a job of GitLab, with programs that only say what they are asked."""
    return run_script_of(job, folder, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", **variables)


def run_script_of(job: Document, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("apt-get", "pip", "passgate", "glab"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" $GITLAB_TOKEN $GITLAB_COMMENT_TOKEN\n')
        (programs / name).chmod(0o755)
    return run_script("\n".join(job["script"]), folder, **variables)


def test_the_files_are_valid_by_the_published_schemas(here: Here, workflow: Document) -> None:
    # `on` is a boolean in YAML 1.1, which PyYAML reads; the schema is older than the image and the event.
    text = (here.path / WORKFLOW).read_text().replace("\non:\n", "\n'on':\n").replace("-24.04", "-22.04")
    document = yaml.safe_load(text)
    assert document["on"].pop("merge_group") == {"branches": ["main"]}
    jsonschema.validate(document, published_schema("https://json.schemastore.org/github-workflow.json"))
    jsonschema.validate(jobs_of(here), published_schema(GITLAB_JOBS))
    assert read(here, ".gitlab-ci.yml") == {"include": [{"local": JOBS}]}


def test_without_an_agent_it_fails_and_says_that_one_is_to_be_named(here: Here, workflow: Document) -> None:
    assert workflow["env"]["AGENT"] == ""
    assert "oracle" not in (here.path / WORKFLOW).read_text()
    assert not (here.path / "agents.yaml").exists()
    first = script(workflow, "Is an agent named?")
    assert steps_of(workflow)[0]["run"] == first, "before anything is installed"
    result = run_script(first, here.path, AGENT=workflow["env"]["AGENT"])
    assert (result.returncode, "name your agent" in result.stdout) == (1, True)
    jobs = jobs_of(here)
    result = run_job(jobs["passgate"], here.path, PASSGATE_AGENT=jobs["variables"]["PASSGATE_AGENT"])
    assert (result.returncode, "name your agent" in result.stdout) == (2, True)


def test_an_agent_that_is_named_is_the_one_of_the_workflow(here: Here) -> None:
    agent = """cli:sh -c 'cat "$1"' sh {prompt_file}"""
    workflow = workflow_of(here, "--agent", agent)
    assert workflow["env"]["AGENT"] == "my-agent"
    assert read(here, "agents.yaml")["agents"] == {"my-agent": {"agent": agent}}
    assert run_script(script(workflow, "Is an agent named?"), here.path, AGENT="my-agent").returncode == 0
    told(here, "validate", "suites", "gates.yaml", "agents.yaml")
    told(here, "doctor", "my-agent")


@pytest.mark.parametrize("agent", ["theirs", "cli:sh {prompt}"])
def test_agents_that_have_names_keep_them(here: Here, agent: str) -> None:
    content = "agents: {theirs: {agent: 'cli:true'}}\n"
    here.write("agents.yaml", content)
    assert workflow_of(here, "--agent", agent)["env"]["AGENT"] == agent
    assert (here.path / "agents.yaml").read_text() == content


@pytest.mark.parametrize("agent", ["oracle", "nop", "nobody", "cli:no-such-program-here", "cli:sh {promt}"])
def test_an_agent_that_cannot_be_one_is_refused_and_nothing_is_written(here: Here, agent: str) -> None:
    exits(here, 2, "init", "--agent", agent)
    assert [path.name for path in here.path.iterdir()] == [".git"]


def test_it_pins_what_it_installs_and_may_write_only_where_no_agent_runs(workflow: Document) -> None:
    actions = [step["uses"] for step in steps_of(workflow) if "uses" in step]
    assert actions
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions), actions
    installs = [step["run"] for step in steps_of(workflow) if "pip install 'passgate" in str(step.get("run"))]
    assert len(installs) == 2
    assert all(re.search(r"'passgate(\[graders\])? @ git\+https://\S+@[0-9a-f]{40}'", text) for text in installs)
    assert workflow["permissions"] == {"contents": "read"}
    writing = [name for name, job in workflow["jobs"].items() if job.get("permissions")]
    assert writing == ["comment", "keep-history"]
    assert not any("passgate run" in str(workflow["jobs"][name]) for name in writing)
    assert workflow["concurrency"]["cancel-in-progress"] is True


def test_its_events_and_commands_are_known(workflow: Document) -> None:
    events = workflow[True]  # type: ignore[index]  # YAML 1.1 reads `on` so
    assert set(events) == {"pull_request", "merge_group", "push", "schedule", "workflow_dispatch"}
    assert {"edited", "opened", "synchronize"} <= set(events["pull_request"]["types"])
    assert {tuple(events[name]["branches"]) for name in ("pull_request", "merge_group", "push")} == {("main",)}
    assert workflow["env"]["PASSGATE_ENGINE"] == "none"
    assert len(events["schedule"][0]["cron"].split()) == 5
    assert set(re.findall(r"'(\w+)'", workflow["env"]["GATE"])) - {"schedule"} == {GateName.NIGHTLY, GateName.CI_MERGE}
    words = script(workflow, "Run the gate").split()
    options = {flag for parameter in COMMANDS["run"].params for flag in parameter.opts}
    assert {"--agent", "--max-cost"} == {word for word in words if word.startswith("--")} & options
    for text in (step["run"] for step in steps_of(workflow) if "run" in step):
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
        assert "${{" not in text, "expressions in commands are an injection"


def test_a_gate_may_run_several_times_and_each_red_one_counts(workflow: Document, tmp_path: Path) -> None:
    passgate = tmp_path / "bin/passgate"
    passgate.parent.mkdir()
    passgate.write_text('#!/bin/sh\necho "$@" >> runs; [ "$(wc -l < runs)" -ne 2 ] || exit 3\n')
    passgate.chmod(0o755)
    variables = {"GATE": "ci_merge", "AGENT": "desk", "MAX_COST": "5", "RUNS": "3"}
    path = f"{passgate.parent}:{os.environ['PATH']}"
    result = run_script(script(workflow, "Run the gate"), tmp_path, PATH=path, **variables)
    assert result.returncode == 3, result.stderr
    assert (tmp_path / "runs").read_text().splitlines() == ["run ci_merge --agent desk --max-cost 5"] * 3


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ("success skipped", 0),
        ("failure success", 0),
        ("failure skipped", 1),
        ("failure failure", 1),
        ("skipped skipped", 1),
    ],
)
def test_the_check_is_green_by_the_gate_or_by_a_sign_off(
    workflow: Document, here: Here, results: str, code: int
) -> None:
    assert run_script(script(workflow, "Is it green?"), here.path, RESULTS=results).returncode == code
    assert workflow["jobs"]["check"]["needs"] == ["gate", "sign-off"]


def test_only_a_single_run_awaits_a_sign_off(workflow: Document, here: Here) -> None:
    """An approval decides one run: it must not make the check green where another one is red or was killed."""
    question, output = script(workflow, "Does the verdict await a sign-off?"), here.path / "output"
    here.write(".passgate/runs/two/verdict.json", '{"awaiting_sign_off": true}')
    run_script(question, here.path, GITHUB_OUTPUT=str(output))
    assert output.read_text() == "awaiting=true\n"
    output.unlink()
    here.write(".passgate/runs/one/plan.json", "{}")
    assert run_script(question, here.path, GITHUB_OUTPUT=str(output)).returncode == 0
    assert not output.exists()


def test_the_comment_is_the_summary_of_the_newest_run(workflow: Document, here: Here) -> None:
    for run in ("1", "2"):
        here.write(f".passgate/runs/{run}/summary.md", f"verdict {run}")
    gh = here.write("bin/gh", '#!/bin/sh\necho "$@" by $GH_TOKEN\n')
    gh.chmod(0o755)
    variables = {"PATH": f"{gh.parent}:{os.environ['PATH']}", "PULL_REQUEST": "7", "GH_TOKEN": "token"}
    result = run_script(script(workflow, "Comment"), here.path, **variables)
    options = "--edit-last --create-if-none --body-file .passgate/runs/2/summary.md"
    assert result.stdout == f"pr comment 7 {options} by token\n"
    job = workflow["jobs"]["comment"]
    assert job["permissions"] == {"pull-requests": "write"}
    assert "!github.event.pull_request.head.repo.fork" in job["if"]


def test_branches_are_those_of_the_repository(here: Here) -> None:
    here.git("branch", "-m", "release/1")
    assert workflow_of(here)[True]["push"] == {"branches": ["release/1"]}
    assert read(here, "gates.yaml")["baseline"] == {"branch": "release/1", "runs": 20, "young": "report"}


@pytest.mark.parametrize(
    ("direct", "suffix"),
    [
        (None, f"=={__version__}"),
        (
            {"url": "https://git.example/p.git", "vcs_info": {"commit_id": "c0ffee"}},
            " @ git+https://git.example/p.git@c0ffee",
        ),
        ("git@git.example:team/p.git", " @ git+https://git.example/team/p.git@"),
        ("https://user:token@git.example/p", " @ git+https://git.example/p@"),
        ("/srv/p.git", " @ git+https://github.com/OWNER/passgate@"),
    ],
)
def test_what_is_installed_is_a_version_that_exists(
    here: Here, monkeypatch: pytest.MonkeyPatch, direct: Document | str | None, suffix: str
) -> None:
    if isinstance(direct, str):
        here.git("remote", "add", "origin", direct)
        suffix += here.git("rev-parse", "HEAD")
        direct = {"url": here.path.as_uri(), "dir_info": {"editable": True}}
    installed = SimpleNamespace(read_text=lambda name: direct and json.dumps(direct))
    monkeypatch.setattr("passgate.flows.cli.repository.distribution", lambda name: installed)
    assert own_version(__version__) == (suffix, "OWNER" not in suffix)


def test_runs_side_by_side_lose_no_history(workflow: Document, tmp_path: Path) -> None:
    fetch, add = script(workflow, "Fetch the history"), script(workflow, "Add it to the branch")
    assert 'sleep "$pause"' in add
    at_once = add.replace('sleep "$pause"', "true")
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    variables = {"REPOSITORY": str(remote), "HISTORY_BRANCH": "passgate-history"}

    def runs(number: int) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / f"job-{number}"
        file = folder / f"new/trials/suite=golden/day=2026-01-31/run-{number}.parquet"
        file.parent.mkdir(parents=True)
        file.write_text(f"of run {number}")
        return run_script(at_once, folder, GITHUB_RUN_ID=str(number), **variables)

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


def test_only_the_files_of_the_run_are_new_history(here: Here, workflow: Document) -> None:
    for name, time in ((".passgate/history/trials/old.parquet", 1), (".passgate/fetched", 2)):
        os.utime(here.write(name, ""), (time, time))
    here.write(".passgate/history/trials/day=1/new.parquet", "")
    assert run_script(script(workflow, "Collect the new history"), here.path).returncode == 0
    assert [path.name for path in here.path.rglob(".passgate/new/**/*") if path.is_file()] == ["new.parquet"]


def test_the_gate_runs_without_the_token_and_the_comment_is_written_with_it(here: Here) -> None:
    jobs = jobs_of(here, "--agent", "cli:cat {prompt_file}")
    assert not (here.path / ".github").exists()
    variables = {**jobs["variables"], "GITLAB_COMMENT_TOKEN": "token"}
    ran = run_job(jobs["passgate"], here.path, PASSGATE_GATE="ci_merge", **variables)
    assert ran.stdout.splitlines()[-1] == "passgate run ci_merge --agent my-agent --max-cost 5"
    assert "pip install passgate[graders,s3] @ git+https://" in ran.stdout
    for run in ("1", "2"):
        here.write(f".passgate/runs/{run}/summary.md", f"verdict {run}")
    merge_request = {"CI_MERGE_REQUEST_IID": "7", "CI_PROJECT_URL": "https://gitlab.example/ada/shop"}
    commented = run_job(jobs["passgate-comment"], here.path, **variables, **merge_request)
    words = "glab mr note 7 --repo https://gitlab.example/ada/shop --unique --message verdict 2 token token"
    assert commented.stdout.splitlines() == [words]
    assert "passgate run" not in str(jobs["passgate-comment"])


def test_merge_requests_read_the_history_and_cannot_write_it(here: Here, tmp_path: Path) -> None:
    jobs = jobs_of(here, "--agent", "cli:cat {prompt_file}")
    shared = tmp_path / "shared/trials/one.parquet"
    shared.parent.mkdir(parents=True)
    shared.write_text("rows")
    job = {"script": [*jobs["passgate"]["script"][:-1], "echo writes to: $PASSGATE_HISTORY_URL"]}
    variables = {"PASSGATE_HISTORY_URL": "s3://w", "PASSGATE_HISTORY_READ_URL": str(tmp_path / "shared")}
    path = {"PATH": f"{here.path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = run_script_of(job, here.path, **jobs["variables"], **variables, CI_MERGE_REQUEST_IID="7", **path)
    assert ran.stdout.splitlines()[-1] == "writes to:", ran.stderr
    assert (here.path / ".passgate/history/trials/one.parquet").read_text() == "rows"
    of_main = run_script_of(job, here.path, **jobs["variables"], **variables, **path)
    assert of_main.stdout.splitlines()[-1] == "writes to: s3://w"
    rules = [rule["if"] for rule in jobs["passgate"]["rules"] if "merge_request" in rule["if"]]
    assert all("$CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED" in rule for rule in rules)


def test_a_file_that_is_there_is_kept_and_what_it_must_include_is_told(here: Here) -> None:
    here.write(".gitlab-ci.yml", "stages: [test]\n")
    said = told(here, "init")
    assert "kept  .gitlab-ci.yml" in said, "GitLab's file says whose CI it is"
    assert f"`include: [{{local: {JOBS}}}]`" in said
    assert (here.path / ".gitlab-ci.yml").read_text() == "stages: [test]\n"
    here.write(".gitlab-ci.yml", f"include: [{{local: {JOBS}}}]\n")
    assert "`include:" not in told(here, "init")
