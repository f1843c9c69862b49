"""How often a run of a gate starts git."""

import shutil
from pathlib import Path

import pytest

from tests.cli.commands import told
from tests.gates import WRITES_OK, gate_of
from tests.project import Project
from tests.scenarios.integrity import commit

pytestmark = pytest.mark.slow


def processes_of_a_run(project: Project, log: Path, **environment: str) -> int:
    """The number of git processes of one run, as a program of that name counts them."""
    program = log.parent / "bin" / "git"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    log.write_text("")
    path = f"{program.parent}:{project.full_environment()['PATH']}"
    agent = "cli:sh -c 'printf ok > result.txt'"
    told(project, "run", "ci_merge", "--engine", "none", "--agent", agent, PATH=path, **environment)
    return len(log.read_text().splitlines())


@pytest.fixture
def gated(bare_project: Project) -> Project:
    """A gate on main; the branch `change` is checked out and has a commit of its own."""
    gate_of(bare_project, "a", k=2)
    bare_project.write(".gitignore", ".passgate/\n")
    commit(bare_project, "The gate")
    bare_project.git("checkout", "-q", "-b", "change")
    bare_project.write("agent.py", "x\n")
    commit(bare_project, "The change")
    return bare_project


@pytest.mark.parametrize("environment", [{"GITHUB_BASE_REF": ""}, {"GITHUB_BASE_REF": "main"}], ids=["alone", "in CI"])
def test_a_run_starts_git_few_times(gated: Project, tmp_path: Path, environment: dict[str, str]) -> None:
    assert [processes_of_a_run(gated, tmp_path / "log", **environment) for _ in range(2)] == [10, 10]


def test_the_files_of_the_merge_base_take_two_more(gated: Project, tmp_path: Path) -> None:
    gated.write("suites/golden/b.yaml", WRITES_OK.format(name="b"))
    assert processes_of_a_run(gated, tmp_path / "log") == 12
