"""What a command is told in its words and in files, and the commands that are refused."""

import json
import shlex
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent, python
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.commands import PLACEHOLDERS, Words
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


async def test_what_looks_like_a_placeholder_in_the_prompt_stays(attempt) -> None:
    transcript = await attempt(cli_agent("echo {prompt}"), a_task(inputs={"prompt": "{trial} {nothing}"}))
    assert transcript.output == "{trial} {nothing}"


async def test_no_shell_reads_the_command(sandbox_of) -> None:
    agent = cli_agent("printf '%s|' {prompt} '$HOME' 'a b' \"c'd\" ; touch pwned")
    task = a_task(inputs={"prompt": NASTY})
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(agent, task, sandbox)
        assert list(sandbox.workspace.iterdir()) == []
    assert transcript.output == "|".join([NASTY, "$HOME", "a b", "c'd", ";", "touch", "pwned", ""])


@pytest.mark.parametrize("command", ["sh -c '${HOME} ${prompt} {} { prompt } {1}'", "sh {Prompt}"])
async def test_other_braces_stay(command: str) -> None:
    assert cli_agent(command).command == Words(tuple(shlex.split(command)))


async def test_what_looks_like_a_variable_of_the_shell_is_one(attempt) -> None:
    agent = cli_agent("sh -c 'prompt=mine; echo ${prompt} {prompt}'")
    assert (await attempt(agent, a_task(inputs={"prompt": "given"}))).output == "mine given"


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
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(cli_agent("echo {prompt}"), a_task(inputs={"prompt": "a" * 3_000_000}))


@pytest.mark.parametrize("command", ["sh {promt}", "sh --x={prompt}{}{file}", "sh '{task}'", "sh {PROMT}", "a {A} {b}"])
def test_an_unknown_placeholder_is_refused(command: str) -> None:
    known = r"known: \{prompt\}, .*\{session\}, \{PROMPT\}, .*\{OUTPUT_FILE\}$"
    with pytest.raises(UsageError, match=r"unknown placeholder \{\w+\} in the agent command; " + known):
        cli_agent(command)


def test_a_command_with_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be split into words"):
        cli_agent("sh 'open")


@pytest.mark.parametrize("command", ["no-such-program-here", "/no/such/program", "''"])
def test_a_missing_program_is_found_before_anything_runs(command: str) -> None:
    with pytest.raises(UsageError, match="is not on this machine"):
        cli_agent(command)


@pytest.mark.parametrize("command", ["./agent.sh", "bin/agent", "{workspace}/agent"])
def test_a_program_of_the_sandbox_is_not_looked_for(command: str) -> None:
    assert cli_agent(command).command == Words((command,))


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


@pytest.mark.parametrize("content", ["#!/no/such/interpreter\n", "#!/bin/sh\n"])
async def test_a_program_that_cannot_be_run_has_not_started(sandbox_of, content: str) -> None:
    """The first has no interpreter, the second must not be executed."""
    async with sandbox_of() as sandbox:
        (sandbox.workspace / "agent").write_text(content)
        if "no" in content:
            (sandbox.workspace / "agent").chmod(0o755)
        transcript = await one_turn(cli_agent("./agent"), a_task(), sandbox)
    assert transcript.end is EndReason.NOT_STARTED


@pytest.mark.parametrize(
    "program", ["import missing_module_of_the_agent", "open('missing.txt')", "print('begun'); exit(127)", "exit(1)"]
)
async def test_a_program_that_starts_and_fails_has_crashed(attempt, program: str) -> None:
    assert (await attempt(python(program))).end is EndReason.CRASHED
