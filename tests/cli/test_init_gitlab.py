"""The jobs that `passgate init --ci gitlab` writes: read as GitLab reads them, their commands really run."""

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from passgate import __version__
from tests.docs.examples import GITLAB_JOBS
from tests.project import Project
from tests.schema_store import published_schema

JOBS = ".gitlab/passgate.yml"


def jobs_of(project: Project, *arguments: str) -> dict[str, Any]:
    result = project.passgate("init", "--ci", "gitlab", *arguments)
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = yaml.safe_load((project.path / JOBS).read_text())
    return content


def run_script(job: dict[str, Any], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The commands of a job, with programs that only say what they are asked."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("apt-get", "pip", "passgate"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" $GITLAB_TOKEN $GITLAB_COMMENT_TOKEN\n')
        (programs / name).chmod(0o755)
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])],
        cwd=folder,
        env={"PATH": f"{programs}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_they_are_valid_by_the_published_schema_and_included(bare_project: Project) -> None:
    jobs = jobs_of(bare_project)
    Draft202012Validator(published_schema(GITLAB_JOBS)).validate(jobs)
    including = yaml.safe_load((bare_project.path / ".gitlab-ci.yml").read_text())
    assert including == {"include": [{"local": JOBS}]}
    assert not (bare_project.path / ".github").exists()


def test_without_an_agent_the_job_fails_and_says_that_one_is_to_be_named(bare_project: Project) -> None:
    jobs = jobs_of(bare_project)
    result = run_script(jobs["passgate"], bare_project.path, PASSGATE_AGENT=jobs["variables"]["PASSGATE_AGENT"])
    assert (result.returncode, "name your agent" in result.stdout) == (2, True)


def test_the_gate_runs_without_the_token_and_the_comment_is_written_with_it(bare_project: Project) -> None:
    jobs = jobs_of(bare_project, "--agent", "cli:cat {prompt_file}")
    variables = {"PASSGATE_AGENT": jobs["variables"]["PASSGATE_AGENT"], "GITLAB_COMMENT_TOKEN": "token"}
    ran = run_script(jobs["passgate"], bare_project.path, PASSGATE_GATE="ci_merge", **variables)
    assert ran.stdout.splitlines()[-2:] == [
        f"pip install passgate[graders]=={__version__}",
        "passgate run ci_merge --agent my-agent",
    ]
    commented = run_script(jobs["passgate-comment"], bare_project.path, **variables)
    assert commented.stdout.splitlines()[-1] == "passgate comment last token token"
    assert "passgate run" not in str(jobs["passgate-comment"])


def test_a_file_that_is_there_is_kept_and_what_it_must_include_is_told(bare_project: Project) -> None:
    bare_project.write(".gitlab-ci.yml", "stages: [test]\n")
    result = bare_project.passgate("init")
    assert "kept  .gitlab-ci.yml" in result.stdout, "GitLab's file says whose CI it is"
    assert f"`include: [{{local: {JOBS}}}]`" in result.stdout
    assert (bare_project.path / ".gitlab-ci.yml").read_text() == "stages: [test]\n"
    bare_project.write(".gitlab-ci.yml", f"include: [{{local: {JOBS}}}]\n")
    assert "`include:" not in bare_project.passgate("init").stdout
