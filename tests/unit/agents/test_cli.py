"""Commands as agents, really run."""

import json
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
from tests.builders import a_task

from passgate.tasks.agents.cli import PLACEHOLDERS, CliAgent
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.transcript import EndReason, Message, Usage

NASTY = 'Say "yes";\n$(touch pwned) `touch pwned` {task_id} \\ \' * && é'


def python(program: str, *arguments: str) -> CliAgent:
    """An agent that is a Python program with these arguments."""
    return CliAgent((sys.executable, "-c", textwrap.dedent(program), *arguments))


def writes(transcript: str) -> CliAgent:
    return python(f"import os; open(os.environ['PASSGATE_TRANSCRIPT'], 'w').write({transcript!r})")


async def test_what_a_command_prints_is_its_answer(attempt) -> None:
    transcript = await attempt(python("import sys; print('  yes'); print('ü'); print('aside', file=sys.stderr)"))
    assert transcript.output == "yes\nü"
    assert transcript.messages == (Message(role="assistant", content="yes\nü"),)
    assert (transcript.end, transcript.detail) == (EndReason.COMPLETED, "")


async def test_text_alone_is_no_complete_transcript(attempt) -> None:
    assert (await attempt(python("print('yes')"))).complete is False


async def test_placeholders_are_filled_in(attempt) -> None:
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    words = [f"{{{name}}}" for name in PLACEHOLDERS] + ["--at={workspace}/x", "{task_id}-{trial}"]
    task = a_task(inputs={"prompt": NASTY, "numbers": [1]})
    transcript = await attempt(python(program, *words), task, trial=2)
    prompt, prompt_file, inputs_file, transcript_file, workspace, task_id, trial, at, both = json.loads(
        transcript.output
    )
    assert (prompt, task_id, trial, both) == (NASTY, "say-yes", "2", "say-yes-2")
    assert at == f"--at={workspace}/x"
    assert Path(workspace).name == "workspace"
    assert {Path(name).name for name in (prompt_file, inputs_file, transcript_file)} == {
        "prompt.txt",
        "inputs.json",
        "transcript.json",
    }


async def test_no_shell_reads_the_command(sandbox_of) -> None:
    agent = CliAgent.from_command("printf '%s|' {prompt} '$HOME' 'a b' \"c'd\" ; touch pwned")
    task = a_task(inputs={"prompt": NASTY})
    async with sandbox_of(task) as sandbox:
        transcript = await agent.run(task, 0, sandbox, seconds=20)
        assert list(sandbox.workspace.iterdir()) == []
    assert transcript.output == "|".join([NASTY, "$HOME", "a b", "c'd", ";", "touch", "pwned", ""])


async def test_what_looks_like_a_placeholder_in_the_prompt_stays(attempt) -> None:
    transcript = await attempt(CliAgent.from_command("echo {prompt}"), a_task(inputs={"prompt": "{trial} {nothing}"}))
    assert transcript.output == "{trial} {nothing}"


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


async def test_a_command_runs_in_the_workspace_with_our_environment(attempt, monkeypatch) -> None:
    monkeypatch.setenv("MY_AGENT_KEY", "k-1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    program = "import os; print(os.getcwd(), os.environ['MY_AGENT_KEY'], os.environ['HOME'], sep='|')"
    where, key, home = (await attempt(python(program))).output.split("|")
    assert Path(where).name == "workspace"
    assert key == "k-1"
    assert Path(home).parent == Path(where).parent, "a home of the trial's own"


async def test_the_judges_key_is_not_the_agents(attempt, monkeypatch) -> None:
    monkeypatch.setenv("PASSGATE_JUDGE_API_KEY", "k-judge")
    transcript = await attempt(python("import os; print([key for key in os.environ if 'JUDGE' in key])"))
    assert transcript.output == "[]"


@pytest.mark.usefixtures("needs_bubblewrap")
@pytest.mark.parametrize(("network", "end"), [(False, EndReason.CRASHED), (True, EndReason.COMPLETED)])
async def test_an_agent_has_the_network_that_the_task_gives(attempt, port: int, network: bool, end: EndReason) -> None:
    agent = python("import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))", str(port))
    assert (await attempt(agent, a_task(network=network))).end is end


async def test_a_transcript_file_is_the_transcript(attempt) -> None:
    reported = {
        "messages": [
            {"role": "user", "content": "Say yes."},
            {
                "role": "assistant",
                "tool_calls": [{"tool": "find", "arguments": {"q": 1}, "result": [1], "is_error": True}],
                "usage": {"tokens_in": 5, "tokens_out": 2, "cost_usd": 0.1},
                "latency_ms": 12.5,
            },
            {"role": "assistant", "content": "yes"},
        ]
    }
    transcript = await attempt(writes(json.dumps(reported)))
    assert transcript.complete is True
    assert transcript.output == "yes"
    assert transcript.steps[0].usage == Usage(tokens_in=5, tokens_out=2, cost_usd=0.1)
    assert transcript.tool_calls[0].is_error is True


async def test_the_end_is_what_we_saw_not_what_the_agent_says(attempt) -> None:
    transcript = await attempt(writes('{"messages": [], "end": "crashed", "detail": "made up"}'))
    assert (transcript.end, transcript.detail) == (EndReason.COMPLETED, "")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not JSON",
        "3",
        '["yes"]',
        '{"messages": 3}',
        '{"messages": [{"role": "robot"}]}',
        '{"unknown": 1}',
        '{"messages": [{"role": "assistant", "usage": {"cost_usd": NaN}}]}',
        '{"messages": [{"role": "assistant", "usage": {"cost_usd": -1}}]}',
        '{"messages": [{"role": "assistant", "usage": {"tokens_in": -1}}]}',
        '{"messages": [{"role": "assistant", "usage": {"tokens_in": 1%s}}]}' % ("0" * 40),
        '{"messages": [{"role": "assistant", "latency_ms": Infinity}]}',
        '{"output": "\\ud800"}',
        '{"messages": [{"role": "assistant", "tool_calls": [{"tool": "a", "result": "\\ud800"}]}]}',
        '{"messages": [{"role": "assistant", "tool_calls": [{"tool": "a", "result": %s}]}]}' % ("[" * 195 + "]" * 195),
        "[" * 100_000,
    ],
)
async def test_a_transcript_that_is_none_cannot_be_measured(attempt, content: str) -> None:
    with pytest.raises(MeasurementError, match="transcript"):
        await attempt(writes(content))


async def test_a_failed_agents_half_transcript_does_not_hide_the_fail(attempt) -> None:
    half = python("""
        import os, sys
        open(os.environ['PASSGATE_TRANSCRIPT'], 'w').write('{"messages": [')
        sys.exit(3)
    """)
    assert (await attempt(half)).end is EndReason.CRASHED
    hanging = python("""
        import os, time
        open(os.environ['PASSGATE_TRANSCRIPT'], 'w').write('{"messages": [')
        time.sleep(60)
    """)
    assert (await attempt(hanging, seconds=1)).end is EndReason.TIMED_OUT


async def test_a_link_is_no_transcript(attempt, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"output": "from elsewhere"}')
    agent = python(f"import os; os.symlink({str(elsewhere)!r}, os.environ['PASSGATE_TRANSCRIPT']); print('yes')")
    assert (await attempt(agent)).output == "yes"


async def test_a_pipe_is_no_transcript(attempt) -> None:
    agent = python("import os; os.mkfifo(os.environ['PASSGATE_TRANSCRIPT']); print('yes')")
    assert (await attempt(agent)).output == "yes"


async def test_a_crash_says_why(attempt) -> None:
    transcript = await attempt(python("import sys; print('half an answer'); sys.exit('no key')"))
    assert transcript.end is EndReason.CRASHED
    assert transcript.detail == "exit code 1: no key"
    assert transcript.output == "half an answer"


async def test_the_end_of_a_long_complaint_is_kept(attempt) -> None:
    transcript = await attempt(python("import sys; sys.exit('x' * 100_000 + 'the reason')"))
    assert transcript.detail.endswith("the reason")
    assert len(transcript.detail) < 3000


async def test_time_that_is_up_ends_the_agent(attempt) -> None:
    transcript = await attempt(python("import time; print('so far', flush=True); time.sleep(60)"), seconds=1)
    assert transcript.end is EndReason.TIMED_OUT
    assert transcript.output == "so far"


async def test_an_agent_that_prints_without_end_is_ended(attempt) -> None:
    transcript = await attempt(CliAgent.from_command("yes"), seconds=60)
    assert transcript.end is EndReason.OUTPUT_LIMIT


async def test_a_signal_is_a_crash(attempt) -> None:
    transcript = await attempt(python("import os; os.kill(os.getpid(), 15)"))
    assert transcript.end is EndReason.CRASHED


@pytest.mark.parametrize("command", ["no-such-program-here", "/no/such/program", "''"])
def test_a_missing_program_is_found_before_anything_runs(command: str) -> None:
    with pytest.raises(UsageError, match="is not on this machine"):
        CliAgent.from_command(command)


@pytest.mark.parametrize("command", ["./agent.sh", "bin/agent", "{workspace}/agent"])
def test_a_program_of_the_sandbox_is_not_looked_for(command: str) -> None:
    assert CliAgent.from_command(command).command == (command,)


async def test_a_program_that_the_sandbox_lacks_is_a_crash(attempt) -> None:
    transcript = await attempt(CliAgent.from_command("./agent.sh"))
    assert transcript.end is EndReason.CRASHED
    assert "./agent.sh" in transcript.detail


@pytest.mark.parametrize("command", ["sh {promt}", "sh --x={prompt}{}{file}", "sh '{task}'"])
def test_an_unknown_placeholder_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder \{\w+\} in the agent command; known: \{prompt\}"):
        CliAgent.from_command(command)


@pytest.mark.parametrize("command", ["sh -c '${HOME} {} { prompt } {1}'", "sh {Prompt}"])
def test_other_braces_stay(command: str) -> None:
    assert CliAgent.from_command(command).command == tuple(shlex.split(command))


def test_a_command_with_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be split into words"):
        CliAgent.from_command("sh 'open")


async def test_a_prompt_that_no_command_can_take_cannot_be_measured(attempt) -> None:
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(CliAgent.from_command("echo {prompt}"), a_task(inputs={"prompt": "a\0b"}))
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(CliAgent.from_command("echo {prompt}"), a_task(inputs={"prompt": "a" * 3_000_000}))
