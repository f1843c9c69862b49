"""Commands as agents, as users write them: what cannot be started is no bad agent."""

import json

import pytest

from tests.gates import WRITES_OK, gate_of
from tests.project import Project

pytestmark = pytest.mark.slow

WRITES_OK_IN_PYTHON = "open('result.txt', 'w').write('ok')\n"


@pytest.mark.parametrize("command", ["python3 agent.py {prompt_file}", "./agent.py {prompt_file}"])
def test_a_script_of_the_repository_is_refused_with_the_line_to_write(bare_project: Project, command: str) -> None:
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    bare_project.write("agent.py", "#!/usr/bin/env python3\n" + WRITES_OK_IN_PYTHON).chmod(0o755)
    right = f"cli:{command.replace('./', '').replace('agent.py', '{project}/agent.py')}"
    run = bare_project.passgate("run", "ci_merge", "--agent", f"cli:{command}")
    assert run.returncode == 2
    assert f"write '{right}'" in run.stderr
    assert not list(bare_project.path.glob(".passgate/runs/*")), "nothing was run"
    tried = bare_project.passgate("try", "suites/golden/a.yaml", "--agent", right)
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_an_agent_starts_in_the_folder_that_its_entry_names(bare_project: Project) -> None:
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    bare_project.write("agents/desk/words.txt", "ok")
    bare_project.write("agents/desk/agent.sh", 'cat words.txt > "$1/result.txt"\n')
    bare_project.write("agents.yaml", "agents: {desk: {agent: 'cli:sh agent.sh {workspace}', cwd: agents/desk}}\n")
    result = bare_project.passgate("try", "suites/golden/a.yaml", "--agent", "desk")
    assert result.returncode == 0, result.stdout + result.stderr


def trials_of(project: Project) -> list[str]:
    journal = (project.run_folders()[-1] / "journal.jsonl").read_text().splitlines()
    return [json.loads(line)["trial"]["status"] for line in journal]


def test_a_command_that_no_trial_can_start_is_exit_2_and_the_run_is_carried_on_once_it_is_mended(
    project: Project,
) -> None:
    gate_of(project, k=10)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    result = project.passgate("run", "ci_merge", "--agent", "cli:sh {project}/agent.sh", "--jobs", "1")
    assert result.returncode == 2, result.stdout
    assert "the agent could not be started in any of 3 trials: exit code " in result.stderr
    assert "agent.sh" in result.stderr
    assert "FAIL" not in result.stdout
    assert trials_of(project).count("failed") == 3, "the others are spared"
    project.write("agent.sh", "printf ok > result.txt\n")
    result = project.passgate("run", "ci_merge", "--resume", "last")
    assert result.returncode == 0, result.stdout + result.stderr
    assert trials_of(project).count("passed") == 10


def test_a_trial_that_breaks_its_own_path_has_failed(project: Project) -> None:
    gate_of(project)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "printf ok > result.txt; [ $PASSGATE_TRIAL = 0 ] || PATH=/nowhere; exec cat result.txt\n")
    result = project.passgate("run", "ci_merge", "--agent", "cli:sh {project}/agent.sh", "--jobs", "1")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "the agent could not be started: exit code 127" in result.stdout


def test_doctor_runs_one_trial_when_it_is_asked_to(bare_project: Project) -> None:
    gate_of(bare_project)
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    bare_project.write("agent.py", WRITES_OK_IN_PYTHON)
    right, wrong = "cli:python3 {project}/agent.py", "cli:python3 {project}/agnet.py"
    result = bare_project.passgate("doctor", right, "--try")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "✓ ok      trial: golden/a passed" in result.stdout
    assert "transcript  completed" in result.stdout
    assert not list(bare_project.path.glob(".passgate/runs/*")), "nothing is recorded"
    result = bare_project.passgate("doctor", wrong, "--try")
    assert result.returncode == 2
    assert "✗ failed  trial: golden/a failed: the agent could not be started: exit code 2" in result.stdout
    assert bare_project.passgate("doctor", wrong).returncode == 0, "without a trial nobody knows"
    assert bare_project.passgate("doctor", "--try").returncode == 2
