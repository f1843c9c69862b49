"""Where a command starts, and files of the repository that it names by a path of the workspace."""

from pathlib import Path

import pytest
from tests.unit.agents.cli.programs import cli_agent

from passgate.tasks.errors import UsageError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an agent of its own, and passgate working in it."""
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "agents/desk").mkdir(parents=True)
    (folder / "suites/_shared/sandboxes/notes/files").mkdir(parents=True)
    (folder / "agent.py").write_text("print('of the repository')")
    program = folder / "agents/desk/agent.sh"
    program.write_text("#!/bin/sh\npwd; cat words.txt\n")
    program.chmod(0o755)
    (folder / "agents/desk/words.txt").write_text("mine")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("command", "right"),
    [
        ("python3 agent.py {prompt_file}", "python3 {project}/agent.py {prompt_file}"),
        ("python3 -u ./agent.py", "python3 -u {project}/agent.py"),
        ("./agents/desk/agent.sh {prompt}", "{project}/agents/desk/agent.sh {prompt}"),
        ("sh agent.py --words agents/desk/words.txt", "sh {project}/agent.py --words {project}/agents/desk/words.txt"),
        ("python3 'agent.py'", "python3 '\"'\"'{project}/agent.py'\"'\"'"),
    ],
)
def test_a_file_of_the_repository_is_refused_with_the_line_to_write(command: str, right: str) -> None:
    with pytest.raises(UsageError) as caught:
        cli_agent(command)
    assert f"write 'cli:{right}'" in str(caught.value)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    "command",
    [
        "python3 {project}/agent.py",
        "python3 {workspace}/agent.py",
        "python3 made.py",
        "sh agent agents",
        "sh --file=agent.py",
        "sh -c 'python3 agent.py'",
        f"sh -c '{'true; ' * 1000}agent.py'",
    ],
)
def test_other_words_are_let_be(command: str) -> None:
    cli_agent(command)


def test_a_file_that_a_sandbox_has_is_the_workspaces(repository: Path) -> None:
    suites = repository / "suites"
    with pytest.raises(UsageError):
        cli_agent("python3 agent.py", suites_folder=suites)
    (suites / "_shared/sandboxes/notes/files/agent.py").write_text("")
    cli_agent("python3 agent.py", suites_folder=suites)


async def test_files_are_named_from_the_repository_wherever_passgate_works(repository, attempt, monkeypatch) -> None:
    monkeypatch.chdir(repository / "agents")
    with pytest.raises(UsageError, match=r"cli:\{project\}/agents/desk/agent\.sh"):
        cli_agent("desk/agent.sh")
    assert (await attempt(cli_agent("python3 {project}/agent.py"))).output == "of the repository"


async def test_a_command_starts_in_its_cwd(repository: Path, attempt) -> None:
    assert (await attempt(cli_agent("./agent.sh", cwd="agents/desk"))).output == f"{repository}/agents/desk\nmine"


GONE = r"is not on this machine: there is no file /.*"
NO_FOLDER = r"`cwd` is no folder: .*; name one relative to "


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("command", "cwd", "match"),
    [
        ("{project}/gone.sh", None, GONE + r"/gone\.sh; .* `working_dir` of its job"),
        ("{project}/agent.py", None, r"cannot be run: `chmod \+x /.*/agent\.py`"),
        ("./gone.sh", "agents/desk", GONE + r"/agents/desk/gone\.sh; check --agent"),
        ("./words.txt", "agents/desk", r"cannot be run: `chmod \+x "),
        ("sh", "agents/gone", NO_FOLDER),
        ("sh", "agent.py", NO_FOLDER),
    ],
)
def test_a_program_of_the_repository_and_its_cwd_must_be_there(command: str, cwd: str | None, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        cli_agent(command, cwd=cwd)
