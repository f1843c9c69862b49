"""What a command is told in its words and in files, where it starts, and the commands that are refused."""

import json
import shlex
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent, python
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.commands import PLACEHOLDERS, Words
from passgate.tasks.agents.presets import presets
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.transcript import EndReason

NASTY = 'Say "yes";\n$(touch pwned) `touch pwned` {task_id} \\ \' * && é'


async def test_placeholders_are_filled_in(attempt) -> None:
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    words = [f"{{{name}}}" for name in PLACEHOLDERS] + ["--at={workspace}/x", "{task_id}-{trial}"]
    task = a_task(inputs={"prompt": NASTY, "numbers": [1]})
    transcript = await attempt(python(program, *words), task, trial=2, session="s-1")
    *filled, at, both = json.loads(transcript.output)
    values = dict(zip(PLACEHOLDERS, filled, strict=True))
    assert values["prompt"] == NASTY
    assert [values[name] for name in ("task_id", "trial", "turn", "session")] == ["say-yes", "2", "0", "s-1"]
    assert (at, both) == (f"--at={values['workspace']}/x", "say-yes-2")
    assert Path(values["workspace"]).name == "workspace"
    files = [Path(value).name for name, value in values.items() if name.endswith("_file")]
    assert files == ["prompt.txt", "inputs.json", "history.json", "transcript.json"]


async def test_no_shell_reads_the_command(sandbox_of) -> None:
    agent = cli_agent("printf '%s|' {prompt} '$HOME' 'a b' \"c'd\" ; touch pwned")
    task = a_task(inputs={"prompt": NASTY})
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(agent, task, sandbox)
        assert list(sandbox.workspace.iterdir()) == []
    assert transcript.output == "|".join([NASTY, "$HOME", "a b", "c'd", ";", "touch", "pwned", ""])


@pytest.mark.parametrize("command", ["sh -c '${HOME} ${prompt} {} { prompt } {1}'", "sh {Prompt}", "./agent.sh"])
def test_other_braces_stay_and_a_program_of_the_sandbox_is_not_looked_for(command: str) -> None:
    assert cli_agent(command).command == Words(tuple(shlex.split(command)))


@pytest.mark.parametrize(
    ("command", "prompt", "output"),
    [
        ("sh -c 'prompt=mine; echo ${prompt} {prompt}'", "given", "mine given"),
        ("echo {prompt}", "{trial} {nothing}", "{trial} {nothing}"),
    ],
)
async def test_what_only_looks_like_a_placeholder_stays(attempt, command: str, prompt: str, output: str) -> None:
    assert (await attempt(cli_agent(command), a_task(inputs={"prompt": prompt}))).output == output


async def test_the_prompt_and_the_inputs_lie_in_files(attempt) -> None:
    program = """
        import json, os
        print(json.dumps([open(os.environ["PASSGATE_PROMPT_FILE"]).read(),
                          json.load(open(os.environ["PASSGATE_INPUTS_FILE"])),
                          os.environ["PASSGATE_TASK_ID"], os.environ["PASSGATE_TRIAL"]]))
    """
    inputs = {"prompt": NASTY, "deep": {"ü": [1, None]}}
    transcript = await attempt(python(program), a_task(inputs=inputs), trial=1)
    assert json.loads(transcript.output) == [NASTY, inputs, "say-yes", "1"]


async def test_a_prompt_that_no_command_can_take_cannot_be_measured(attempt) -> None:
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(cli_agent("echo {prompt}"), a_task(inputs={"prompt": "a\0b"}))


UNKNOWN = r"unknown placeholder \{\w+\} in the agent command; known: \{prompt\}, .*\{session\}, .*\{OUTPUT_FILE\}$"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("sh {promt}", UNKNOWN),
        ("sh --x={prompt}{}{file}", UNKNOWN),
        ("sh {PROMT}", UNKNOWN),
        ("a {A} {b}", UNKNOWN),
        ("sh 'open", "cannot be split into words"),
        ("no-such-program-here", "is not on this machine"),
        ("/no/such/program", "is not on this machine"),
        ("''", "is not on this machine"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused(command: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        cli_agent(command)


@pytest.mark.parametrize(
    "command",
    [
        "./agent.sh",
        "{workspace}/agent.sh",
        "sh agent.sh",
        "python3 agent.sh",
        "python3 {project}/no-such-folder/agent.sh",
        "python3 -m no_such_module_here",
        "sh -c 'cd /; exec python3 agent.sh'",
        "sh -c 'cd / && ./agent.sh {prompt}'",
    ],
)
async def test_a_command_that_is_not_there_has_not_started(attempt, command: str) -> None:
    transcript = await attempt(cli_agent(command))
    assert transcript.end is EndReason.NOT_STARTED
    assert transcript.messages == ()
    assert transcript.detail.startswith("exit code ")


@pytest.mark.parametrize(("content", "mode"), [("#!/no/such/interpreter\n", 0o755), ("#!/bin/sh\n", 0o644)])
async def test_a_program_that_cannot_be_run_has_not_started(sandbox_of, content: str, mode: int) -> None:
    async with sandbox_of() as sandbox:
        (sandbox.workspace / "agent").write_text(content)
        (sandbox.workspace / "agent").chmod(mode)
        transcript = await one_turn(cli_agent("./agent"), a_task(), sandbox)
    assert transcript.end is EndReason.NOT_STARTED


@pytest.mark.parametrize(
    "program", ["import missing_module_of_the_agent", "open('missing.txt')", "print('begun'); exit(127)", "exit(1)"]
)
async def test_a_program_that_starts_and_fails_has_crashed(attempt, program: str) -> None:
    assert (await attempt(python(program))).end is EndReason.CRASHED


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
NO_FOLDER = r"`cwd` is not a folder: .*; name one relative to "


@pytest.mark.parametrize("name", presets())
def test_a_preset_without_its_program_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("passgate.tasks.agents.commands.search_path", lambda: "/usr/bin:/bin")
    preset = presets()[name]
    with pytest.raises(UsageError, match=rf"'{preset.program}' is not on .*: npm install --global {preset.package}$"):
        CliAgent.from_spec(preset.spec(name), Path())


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("command", "cwd", "match"),
    [
        ("{project}/gone.sh", None, GONE + r"/gone\.sh; check --agent"),
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
