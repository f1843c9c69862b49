"""`passgate doctor`: a line for everything that was looked at, and exit code 2 when something would not work."""

from tests.answering import answering
from tests.cli.test_command_line import imported_by
from tests.project import REPOSITORY, Project


def with_gates(project: Project) -> Project:
    project.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    return project


def test_a_repository_in_which_all_is_well(bare_project: Project) -> None:
    with_gates(bare_project)
    with answering(200) as server:
        upstreams = f"{{openai: {{base_url: '{server.url}/v1'}}}}"
        bare_project.write("agents.yaml", f"agents: {{mine: {{agent: 'openai:gpt-5-mini', upstreams: {upstreams}}}}}\n")
        result = bare_project.passgate("doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert "agent mine" in lines
    assert "  ✓ ok      price: gpt-5-mini costs $0.25 in and $2 out per million tokens" in lines
    assert any(line.startswith(f"  ✓ ok      endpoint openai: {server.url}/v1/models answers 200") for line in lines)
    assert lines[-1].endswith(", 0 failed")


def test_what_would_not_work_is_exit_2(bare_project: Project) -> None:
    result = with_gates(bare_project).passgate("doctor", "cli:no-such-program-here", "nop")
    assert result.returncode == 2
    assert result.stderr == ""
    assert "  ✗ failed  cli: the agent command 'no-such-program-here' is not on this machine" in result.stdout
    assert "  ✓ ok      nop: nop needs nothing" in result.stdout
    assert result.stdout.rstrip().endswith(", 1 failed")


def test_a_folder_without_anything_is_told_how_to_begin(bare_project: Project) -> None:
    result = bare_project.passgate("doctor")
    assert result.returncode == 0
    assert "→ make one with `passgate init`" in result.stdout
    assert "→ name agents in agents.yaml" in result.stdout


def test_the_repository_that_init_makes_is_well(bare_project: Project) -> None:
    assert bare_project.passgate("init").returncode == 0
    result = bare_project.passgate("doctor")
    assert result.returncode == 0, result.stdout
    assert ", 0 failed" in result.stdout


def test_files_elsewhere(bare_project: Project) -> None:
    bare_project.write("policies/gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    bare_project.write("policies/agents.yaml", "agents: {mine: {agent: 'cli:sh'}}\n")
    bare_project.write("evals/.agentv/targets.yaml", "targets: [{name: theirs, provider: cli, command: sh}]\n")
    result = bare_project.passgate("doctor", "--gates", "policies/gates.yaml", "--suites", "evals")
    assert result.returncode == 0, result.stdout
    assert "agent mine" in result.stdout
    assert "agent theirs" in result.stdout


def test_it_starts_without_the_engine_and_the_tables(bare_project: Project) -> None:
    with_gates(bare_project)
    modules = imported_by(bare_project, "doctor", "nop")
    assert "passgate.tasks.commands.doctor" in modules
    assert modules.isdisjoint({"prefect", "pandas", "pyarrow", "matplotlib"})
