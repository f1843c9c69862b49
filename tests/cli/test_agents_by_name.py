"""`--agent NAME`: agents of agents.yaml and targets of AgentV, run as they are."""

import pytest

from tests.cli.test_validate import GOOD
from tests.project import Project

pytestmark = pytest.mark.slow

TARGETS = """\
targets:
  - name: default
    use_target: ${{ MY_TARGET }}
  - name: shell
    provider: cli
    command: printf 'it is %s' {PROMPT} | tr I i > {OUTPUT_FILE}
  - name: elsewhere
    provider: cli
    command: ./agent.sh {PROMPT_FILE} {OUTPUT_FILE}
    cwd: ../tools
  - name: editor
    provider: vscode
"""
TASK = GOOD.format(name="one").replace("Do it.", "I am done")


def with_targets(project: Project) -> Project:
    project.write("suites/golden/one.yaml", TASK)
    project.write(".agentv/targets.yaml", TARGETS)
    agent = project.write("tools/agent.sh", '#!/bin/sh\ncat "$1" > "$2"\npwd >&2\n')
    agent.chmod(0o755)
    return project


def test_an_agent_of_agents_yaml(bare_project: Project) -> None:
    bare_project.write("suites/golden/one.yaml", TASK)
    bare_project.write("agents.yaml", "agents: {mine: {agent: 'cli:echo {prompt}'}}\n")
    result = bare_project.passgate("try", "suites/golden/one.yaml", "--agent", "mine")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "I am done" in result.stdout


def test_targets_of_agentv_with_their_shell_their_folder_and_their_aliases(bare_project: Project) -> None:
    project = with_targets(bare_project)
    for name, said in (("shell", "it is i am done"), ("elsewhere", "I am done"), ("default", "it is i am done")):
        result = project.passgate("try", "suites/golden/one.yaml", "--agent", name, MY_TARGET="shell")
        assert result.returncode == 0, result.stdout + result.stderr
        assert said in result.stdout


def test_what_is_no_agent_is_exit_2_with_its_place(bare_project: Project) -> None:
    project = with_targets(bare_project)
    for name, message in (
        ("editor", ".agentv/targets.yaml:12:15: targets[3].provider: the provider 'vscode' cannot be an agent"),
        ("default", ".agentv/targets.yaml:3:17: targets[0].use_target: not set in the environment: MY_TARGET"),
        ("shel", "unknown agent 'shel'; did you mean 'shell'? Known: the agents shell, "),
    ):
        result = project.passgate("try", "suites/golden/one.yaml", "--agent", name)
        assert result.returncode == 2
        assert message in result.stderr
