"""A gate that a hook of git runs: the variables of its repository are nobody's in the gate."""

import shlex
from pathlib import Path

import pytest

from tests.gates import agent_file, gate_of, shell_agent, verdict_of
from tests.project import Project

COMMITS = (
    "git init -q . && git config user.name agent && git config user.email agent@example.org && "
    "printf ok > result.txt && git add result.txt && git commit -qm 'the work of the agent'"
)
PYTHON = f"""
import subprocess

def agent(attempt):
    subprocess.run({COMMITS!r}, shell=True, cwd=attempt.workspace, check=True)
    return "done"
"""


@pytest.mark.parametrize("kind", ["cli", "python"])
@pytest.mark.parametrize("isolation", ["bubblewrap", "process_group"])
def test_a_pre_commit_hook_runs_the_gate(bare_project: Project, tmp_path: Path, kind: str, isolation: str) -> None:
    gate_of(bare_project, "a", k=1)
    agent = shell_agent(bare_project, COMMITS) if kind == "cli" else agent_file(bare_project, PYTHON)
    bare_project.git("add", ".")
    bare_project.git("commit", "-q", "-m", "Add the gate")
    broken = tmp_path / "bin/bwrap"
    broken.parent.mkdir()
    if isolation == "process_group":
        broken.write_text("#!/bin/sh\nexit 1\n")
        broken.chmod(0o755)
    command = shlex.join(bare_project.command("run", "ci_merge", *agent, "--engine", "none", "--quiet"))
    hook = bare_project.write(
        ".git/hooks/pre-commit", f"#!/bin/sh\nPATH={broken.parent}:$PATH\nrm $0\n{command} > {tmp_path}/said\n"
    )
    hook.chmod(0o755)
    bare_project.write("note.txt", "mine")
    bare_project.git("add", "note.txt")
    bare_project.git("commit", "-q", "-m", "My own change", "note.txt")
    assert verdict_of(bare_project)["decision"] == "PASS", (tmp_path / "said").read_text()
    assert bare_project.git("log", "--all", "--format=%s").splitlines() == ["My own change", "Add the gate", "Begin"]
    assert "user.name" not in bare_project.git("config", "--local", "--list")
