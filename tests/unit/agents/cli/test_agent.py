"""Commands as agents, really run."""

import asyncio
import json
import secrets
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn
from tests.unit.sandboxes.conftest import marked, until
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

from passgate.tasks.agents.cli.agent import CliAgent
from passgate.tasks.agents.cli.commands import PLACEHOLDERS, Words
from passgate.tasks.budgets.access import Unmetered
from passgate.tasks.budgets.meter import open_meter
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint, Upstreams
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Usage
from passgate.tasks.sandboxes.workbench import Workbench

NASTY = 'Say "yes";\n$(touch pwned) `touch pwned` {task_id} \\ \' * && é'


def python(program: str, *arguments: str) -> CliAgent:
    """An agent that is a Python program with these arguments."""
    return CliAgent(Words((sys.executable, "-c", textwrap.dedent(program), *arguments)))


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
    agent = CliAgent.from_command("printf '%s|' {prompt} '$HOME' 'a b' \"c'd\" ; touch pwned")
    task = a_task(inputs={"prompt": NASTY})
    async with sandbox_of(task) as sandbox:
        transcript = await one_turn(agent, task, sandbox)
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
    assert CliAgent.from_command(command).command == Words((command,))


async def test_a_program_that_the_sandbox_lacks_is_a_crash(attempt) -> None:
    transcript = await attempt(CliAgent.from_command("./agent.sh"))
    assert transcript.end is EndReason.CRASHED
    assert "./agent.sh" in transcript.detail


@pytest.mark.parametrize("command", ["sh {promt}", "sh --x={prompt}{}{file}", "sh '{task}'", "sh {PROMT}", "a {A} {b}"])
def test_an_unknown_placeholder_is_refused(command: str) -> None:
    known = r"known: \{prompt\}, .*\{session\}, \{PROMPT\}, .*\{OUTPUT_FILE\}$"
    with pytest.raises(UsageError, match=r"unknown placeholder \{\w+\} in the agent command; " + known):
        CliAgent.from_command(command)


@pytest.mark.parametrize("command", ["sh -c '${HOME} ${prompt} {} { prompt } {1}'", "sh {Prompt}"])
async def test_other_braces_stay(command: str) -> None:
    assert CliAgent.from_command(command).command == Words(tuple(shlex.split(command)))


async def test_what_looks_like_a_variable_of_the_shell_is_one(attempt) -> None:
    agent = CliAgent.from_command("sh -c 'prompt=mine; echo ${prompt} {prompt}'")
    assert (await attempt(agent, a_task(inputs={"prompt": "given"}))).output == "mine given"


def test_a_command_with_an_open_quote_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be split into words"):
        CliAgent.from_command("sh 'open")


async def test_a_prompt_that_no_command_can_take_cannot_be_measured(attempt) -> None:
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(CliAgent.from_command("echo {prompt}"), a_task(inputs={"prompt": "a\0b"}))
    with pytest.raises(MeasurementError, match="cannot start"):
        await attempt(CliAgent.from_command("echo {prompt}"), a_task(inputs={"prompt": "a" * 3_000_000}))


class Metered(Unmetered):
    """What an agent is told of a meter that nobody calls in these tests."""

    def __init__(self, **variables: str) -> None:
        super().__init__()
        self.variables = {
            "OPENAI_BASE_URL": "http://127.0.0.1:1/t",
            "OPENAI_API_KEY": "of-the-trial",
        } | variables


SEES = "import json, os; print(json.dumps(dict(os.environ)))"


async def test_the_way_to_the_models_comes_last(attempt, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the real one")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere")
    seen = json.loads((await attempt(python(SEES), access=Metered(TRIAL_URL="here"))).output)
    assert seen["OPENAI_BASE_URL"] == "http://127.0.0.1:1/t"
    assert seen["TRIAL_URL"] == "here"
    assert "the real one" not in seen.values()


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, ("127.0.0.1,localhost", "127.0.0.1,localhost")),
        ({"no_proxy": "a.example, b.example"}, ("a.example,b.example,127.0.0.1,localhost",) * 2),
        ({"NO_PROXY": "localhost,a.example"}, ("localhost,a.example,127.0.0.1",) * 2),
        ({"NO_PROXY": "a", "no_proxy": "b"}, ("a,127.0.0.1,localhost", "b,127.0.0.1,localhost")),
        ({"NO_PROXY": "*"}, ("*", "*")),
    ],
)
async def test_no_proxy_is_asked_for_the_meter(attempt, monkeypatch, given, seen: tuple[str, str]) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    metered = json.loads((await attempt(python(SEES), access=Metered())).output)
    assert (metered["NO_PROXY"], metered["no_proxy"]) == seen
    unmetered = json.loads((await attempt(python(SEES))).output)
    assert {name: value for name, value in unmetered.items() if name.upper() == "NO_PROXY"} == given


async def test_the_variables_of_the_workspace_go_before_ours_and_after_the_meters(attempt, monkeypatch) -> None:
    monkeypatch.setenv("MODE", "of the shell")
    monkeypatch.setenv("OTHER", "of the shell")
    wanted = {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere", "PASSGATE_TRIAL": "7"}
    task = a_task(workspace={"environment": wanted})
    seen = json.loads((await attempt(python(SEES), task, access=Metered())).output)
    assert (seen["MODE"], seen["OTHER"], seen["PASSGATE_TRIAL"]) == ("of the task", "of the shell", "0")
    assert seen["OPENAI_BASE_URL"] == Metered().variables["OPENAI_BASE_URL"]


async def test_a_proxy_of_the_agents_variables_is_not_asked_either(attempt, monkeypatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    seen = json.loads((await attempt(python(SEES), access=Metered(NO_PROXY="a.example"))).output)
    assert seen["NO_PROXY"] == seen["no_proxy"] == "a.example,127.0.0.1,localhost"


TURN = """
    import json, os
    told = dict((name, os.environ["PASSGATE_" + name]) for name in ("TURN", "SESSION"))
    prompt = open(os.environ["PASSGATE_PROMPT_FILE"]).read()
    print(json.dumps([prompt, json.load(open(os.environ["PASSGATE_HISTORY"])), told]))
"""


async def test_every_turn_is_told_what_went_before(sandbox_of) -> None:
    call = ToolCall(tool="find", arguments={"q": 1}, result=[1])
    history = (Message(role="user", content="Hé?"), Message(role="assistant", content="What?", tool_calls=(call,)))
    async with sandbox_of() as sandbox:
        first = await one_turn(python(TURN), a_task(), sandbox, session="s-1")
        second = await one_turn(python(TURN), a_task(), sandbox, prompt="Now.", turn=1, history=history, session="s-1")
    assert json.loads(first.output) == ["Say yes.", [], {"TURN": "0", "SESSION": "s-1"}]
    prompt, told, variables = json.loads(second.output)
    assert (prompt, variables) == ("Now.", {"TURN": "1", "SESSION": "s-1"})
    assert [Message.model_validate(message) for message in told] == list(history)


async def test_turns_share_the_workspace_and_not_the_transcript(sandbox_of) -> None:
    program = """
        import os, pathlib
        if os.environ["PASSGATE_TURN"] == "0":
            pathlib.Path("left").write_text("by the first turn")
            pathlib.Path(os.environ["PASSGATE_TRANSCRIPT"]).write_text('{"output": "first"}')
        else:
            print(pathlib.Path("left").read_text())
    """
    async with sandbox_of() as sandbox:
        first = await one_turn(python(program), a_task(), sandbox)
        second = await one_turn(python(program), a_task(), sandbox, turn=1)
    assert (first.output, second.output) == ("first", "by the first turn")


async def test_what_one_turn_lays_out_for_the_next_is_not_followed(sandbox_of, tmp_path: Path) -> None:
    """Else passgate itself would write where the agent cannot."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    program = """
        import os, pathlib, sys
        told = pathlib.Path(os.environ["PASSGATE_PROMPT_FILE"])
        for folder in (told.parent, *(told.parent.parent / ("turn-%d" % n) for n in range(3))):
            folder.mkdir(exist_ok=True)
            for name in ("prompt.txt", "inputs.json", "history.json", "transcript.json"):
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(sys.argv[1])
    """
    agent = python(program, str(precious))
    async with sandbox_of() as sandbox:
        for turn in range(2):
            assert (await one_turn(agent, a_task(), sandbox, turn=turn)).end is EndReason.COMPLETED
    assert precious.read_text() == "mine"


async def test_an_agent_that_is_called_off_is_gone(sandbox_of) -> None:
    word = f"passgate-test-{secrets.token_hex(8)}"
    program = """
        import subprocess, sys, time
        child = [sys.executable, "-c", "import time; time.sleep(120)", sys.argv[1]]
        subprocess.Popen(child, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(120)
    """
    async with sandbox_of() as sandbox:
        running = asyncio.create_task(one_turn(python(program, word), a_task(), sandbox, seconds=60))
        assert await until(lambda: len(marked(word)) >= 2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked(word) == []


CALLS_ITS_MODEL = """
    import openai, os
    for _ in range(3):
        try:
            stream = openai.OpenAI(max_retries=0).chat.completions.create(
                model="model-1", stream=True, messages=[dict(role="user", content="Say yes.")]
            )
            print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
        except openai.APIStatusError as error:
            print("refused", os.environ["HTTPS_PROXY"])
"""


@pytest.mark.usefixtures("needs_bubblewrap")
async def test_an_agent_without_network_calls_its_model_through_the_meter(
    suites: Path, upstream: ScriptedUpstream, monkeypatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    upstream.says(Says("yes"))
    spec = AgentSpec(kind=AgentKind.CLI, upstreams=Upstreams(openai=Endpoint(base_url=upstream.openai_base_url)))
    async with open_meter(spec, PriceTable(), Purse(), environment={}) as meter:
        with (
            Workbench(suites, processes=2, bridge=meter.bridge) as workbench,
            meter.trial(Budgets(max_steps=2), lambda _: False, seconds=60) as access,
        ):
            async with workbench.sandbox(a_task()) as sandbox:
                assert (sandbox.isolation, sandbox.network) == ("bubblewrap", False)
                reported = await one_turn(python(CALLS_ITS_MODEL), a_task(), sandbox, access=access, seconds=60)
                transcript = await access.transcript(reported)
    assert reported.output == "yes\nyes\nrefused http://127.0.0.1:9"
    assert upstream.count == 2
    assert (transcript.end, len(transcript.steps)) == (EndReason.OVER_BUDGET, 2)
