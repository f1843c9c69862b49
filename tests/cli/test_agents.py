"""Agents as users name them: by a command, by the name of an entry or of a target, or as a service.

What cannot be started or reached is no bad agent, and is found before the first trial where it can be.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.builders import write_task
from tests.cli.commands import Here, exits, refused, told
from tests.gates import agent_file, finished_trials, gate_of, shell_agent
from tests.prefect_servers import free_port
from tests.project import Project
from tests.unit.agents.agent_server import Says, running_agent

NO_KEYS = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}
RUN = ("run", "ci_merge", "--engine", "none")
TRY = ("try", "golden/a", "--agent")
WRITES_OK_IN_PYTHON = "#!/usr/bin/env python3\nopen('result.txt', 'w').write('ok')\n"
TARGETS = """\
targets:
  - name: default
    use_target: ${{ MY_TARGET }}
  - name: shell
    provider: cli
    command: printf 'it is %s' {PROMPT} | tr R r > {OUTPUT_FILE}
  - name: elsewhere
    provider: cli
    command: ./agent.sh {PROMPT_FILE} {OUTPUT_FILE}
    cwd: ../tools
  - name: editor
    provider: vscode
"""


def ran_nothing(project: Here) -> bool:
    return not list(project.path.glob(".passgate/runs/*"))


@pytest.mark.parametrize("command", ["python3 agent.py {prompt_file}", "./agent.py {prompt_file}"])
def test_a_script_of_the_repository_is_refused_with_the_line_to_write(gate_here: Here, command: str) -> None:
    gate_here.write("agent.py", WRITES_OK_IN_PYTHON).chmod(0o755)
    right = f"cli:{command.replace('./', '').replace('agent.py', '{project}/agent.py')}"
    assert f"write '{right}'" in refused(gate_here, *RUN, "--agent", f"cli:{command}")
    assert ran_nothing(gate_here)
    told(gate_here, *TRY, right)


def test_an_agent_that_is_not_isolated_is_refused_where_isolation_is_required(gate_here: Here) -> None:
    gate_of(gate_here)
    gate_here.write("bin/bwrap", "#!/bin/sh\necho no namespaces >&2\nexit 1\n").chmod(0o755)
    gate_here.environment["PATH"] = f"{gate_here.path}/bin:{os.environ['PATH']}"
    agent = ("--agent", "cli:sh -c 'printf ok > result.txt'")
    assert "NO ISOLATION: bubblewrap does not work here (no namespaces)" in exits(gate_here, 0, *RUN, *agent).stderr
    gates = gate_here.path / "gates.yaml"
    gates.write_text(f"{gates.read_text()}isolation: required\n")
    runs = list(gate_here.path.glob(".passgate/runs/*"))
    for command in ((*RUN, *agent), (*TRY, agent[1])):
        message = refused(gate_here, *command)
        assert "demands isolation, and bubblewrap does not work here (no namespaces): nothing was run" in message
        assert "`isolation: preferred`" in message
    assert list(gate_here.path.glob(".passgate/runs/*")) == runs


@pytest.mark.slow
def test_a_command_that_no_trial_can_start_is_exit_2_and_its_run_is_carried_on_once_mended(
    gate_here: Here,
) -> None:
    gate_of(gate_here, k=10)
    result = exits(gate_here, 2, *RUN, "--agent", "cli:sh {project}/agent.sh", "--jobs", "1")
    assert "the agent could not be started in any of 3 trials: exit code " in result.stderr
    assert "agent.sh" in result.stderr
    assert "FAIL" not in result.stdout
    statuses = [line["trial"]["status"] for line in finished_trials(gate_here)]
    assert statuses.count("failed") == 3, "the others are spared"
    gate_here.write("agent.sh", "printf ok > result.txt\n")
    told(gate_here, *RUN, "--resume", "last")
    assert [line["trial"]["status"] for line in finished_trials(gate_here)].count("passed") == 10


@pytest.mark.slow
def test_a_trial_that_breaks_its_own_path_has_failed(gate_here: Here) -> None:
    script = "printf ok > result.txt; [ $PASSGATE_TRIAL = 0 ] || PATH=/nowhere; exec cat result.txt\n"
    said = exits(gate_here, 1, *RUN, *shell_agent(gate_here, script), "--jobs", "1").stdout
    assert "the agent could not be started: exit code 127" in said


@pytest.mark.slow
def test_doctor_runs_one_trial_when_it_is_asked_to(gate_here: Here) -> None:
    gate_here.write("agent.py", WRITES_OK_IN_PYTHON)
    right, wrong = "cli:python3 {project}/agent.py", "cli:python3 {project}/agnet.py"
    said = told(gate_here, "doctor", right, "--try")
    assert "✓ ok      trial: golden/a passed" in said
    assert "transcript  completed" in said
    assert ran_nothing(gate_here)
    failed = "✗ failed  trial: golden/a failed: the agent could not be started: exit code 2"
    assert failed in exits(gate_here, 2, "doctor", wrong, "--try").stdout
    told(gate_here, "doctor", wrong)  # Without a trial nobody knows
    exits(gate_here, 2, "doctor", "--try")


@pytest.fixture
def named(here: Here) -> Here:
    """An agent and targets, and a task that wants its prompt back."""
    grader = {"type": "output_check", "contains": ["eport it"]}
    write_task(here.path / "suites/golden/a.yaml", task_id="a", inputs={"prompt": "Report it."}, graders=[grader])
    here.write("agents.yaml", "agents: {mine: {agent: 'cli:echo {prompt}'}}\n")
    here.write(".agentv/targets.yaml", TARGETS)
    here.write("tools/agent.sh", '#!/bin/sh\ncat "$1" > "$2"\npwd >&2\n').chmod(0o755)
    return here


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine", "Report it."),
        ("shell", "it is report it."),
        ("elsewhere", "Report it."),
        ("default", "it is report it."),
    ],
)
def test_agents_and_targets_of_agentv_with_their_shell_their_folder_and_their_aliases(
    named: Here, name: str, said: str
) -> None:
    assert said in told(named, *TRY, name, MY_TARGET="shell")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("editor", ".agentv/targets.yaml:12:15: targets[3].provider: the provider 'vscode' cannot be an agent"),
        ("default", ".agentv/targets.yaml:3:17: targets[0].use_target: not set in the environment: MY_TARGET"),
        ("shel", "unknown agent 'shel'; did you mean 'shell'? Known: the agents shell, "),
    ],
)
def test_what_is_no_agent_is_exit_2_with_its_place(named: Here, name: str, message: str) -> None:
    assert message in refused(named, *TRY, name)


def test_a_missing_key_is_bad_configuration_and_nothing_is_run(gate_here: Here) -> None:
    assert "OPENAI_API_KEY is not set" in refused(gate_here, *RUN, "--agent", "openai:gpt-5-mini", **NO_KEYS)
    assert ran_nothing(gate_here)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["loop", "service"])
def test_a_provider_that_is_down_is_inconclusive_and_nothing_is_run(gate_here: Here, agent: str) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    loop = f"{{agent: 'openai:gpt-5-mini', upstreams: {{openai: {{base_url: '{address}/v1'}}}}}}"
    gate_here.write("agents.yaml", f"agents: {{loop: {loop}, service: {{agent: 'http:{address}/ask'}}}}")
    said = exits(gate_here, 3, *RUN, "--agent", agent, **NO_KEYS).stderr
    assert f"{address}/" in said
    assert "cannot be reached" in said
    assert ran_nothing(gate_here)


def test_what_a_service_does_not_report_is_said_in_terms_of_its_settings(here: Here) -> None:
    grader = {"type": "tool_calls", "required": ["get_order"]}
    write_task(here.path / "suites/golden/a.yaml", task_id="a", graders=[grader])
    with running_agent() as server:
        shown = " ".join(exits(here, 3, *TRY, server.url).stdout.split())
    assert "`http.tool_calls`" in shown
    assert "PASSGATE_TRANSCRIPT" not in shown


def test_an_endpoint_that_answers_500_has_completed_nothing(gate_here: Here) -> None:
    with running_agent() as server:
        server.replies = [Says({"error": "no memory left"}, status=500)]
        result = exits(gate_here, 3, *TRY, server.url)
    assert result.stderr == ""
    assert "completed" not in result.stdout
    for said in ("transcript  broken off", "answered 500", "no memory left"):
        assert said in result.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "raise LookupError('no order 17')",
            ("transcript crashed, ", "the agent crashed: LookupError: no order 17", "line 2, in agent"),
        ),
        ("return 3", ("transcript unreadable", "the agent returned int, not a text or a transcript")),
    ],
    ids=["crash", "answer of a wrong type"],
)
def test_a_python_agent_that_breaks_has_completed_nothing(gate_here: Here, body: str, said: tuple[str, ...]) -> None:
    result = exits(gate_here, 1, "try", "golden/a", *agent_file(gate_here, f"def agent(attempt):\n    {body}\n"))
    assert result.stderr == ""
    assert "completed" not in result.stdout
    shown = " ".join(result.stdout.replace("│", "").split())  # Long paths wrap the lines
    assert all(one in shown for one in said), shown


TASK = "suites/golden/a.yaml"


@pytest.fixture
def active(gate: Project, tmp_path: Path) -> Path:
    """An environment with a `python` and a package of its own, active in the shell."""
    write_task(gate.path / TASK)
    environment = tmp_path / "environment"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Project(environment / "lib" / version / "site-packages")
    packages.write("desk_package.py", "ANSWER = 'yes'\n")
    python = Project(environment / "bin").write("python", "#!/bin/sh\necho yes\n")
    python.chmod(0o755)
    gate.environment["VIRTUAL_ENV"] = str(environment)
    return environment


def test_python_of_a_command_is_the_active_one_and_doctor_says_so(gate: Project, active: Path) -> None:
    agent = "cli:python agent-of-mine.py {prompt_file}"
    told(gate, "try", TASK, "--agent", agent)
    assert f"{active}/bin/python" in told(gate, "doctor", agent)


def test_a_function_finds_the_packages_of_the_active_one(gate: Project, active: Path) -> None:
    gate.write("agent.py", "import desk_package\ndef answer(attempt): return desk_package.ANSWER\n")
    told(gate, "try", TASK, "--agent", "python:agent:answer")
    packages = active / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages.rename(active / "lib/python3.99")
    error = exits(gate, 2, "try", TASK, "--agent", "python:agent:answer").stderr
    assert f"environment {active}, which has python3.99: install passgate with that Python" in " ".join(error.split())
    assert "install passgate with that Python" in exits(gate, 2, "doctor", "python:agent:answer").stdout
    del gate.environment["VIRTUAL_ENV"]
    error = exits(gate, 2, "try", TASK, "--agent", "python:agent:answer").stderr
    assert "desk_package" in error
    assert "active environment" not in error


def test_without_an_active_one_it_is_that_of_the_path_and_at_last_passgates_own(gate: Project, active: Path) -> None:
    del gate.environment["VIRTUAL_ENV"]
    agent = "cli:python -c print('yes')"
    assert f"{active}/bin/python" in told(gate, "doctor", agent, PATH=f"{active}/bin:/usr/bin:/bin")
    empty = active / "empty"
    empty.mkdir()
    (empty / "sh").symlink_to("/bin/sh")
    (empty / "git").symlink_to("/usr/bin/git")
    assert f"{Path(sys.executable).parent}/python" in told(gate, "doctor", agent, PATH=str(empty))
