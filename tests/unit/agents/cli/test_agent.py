"""Commands as agents, really run: how they end, the transcripts that they write, and their environment."""

import json
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.agents.cli.programs import cli_agent, python
from tests.unit.agents.conftest import Metered, one_turn
from tests.unit.conftest import LONG, Marked, call_off

from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.transcripts import LONGEST_DETAIL
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript

LEFT = "$PASSGATE_TRANSCRIPT"
TRANSCRIPT = "transcript.json cannot be read:"


async def test_what_a_command_prints_is_its_answer(attempt) -> None:
    transcript = await attempt(python("import sys; print('  yes'); print('ü'); print('aside', file=sys.stderr)"))
    assert transcript.output == "yes\nü"
    assert transcript.messages == (Message(role="assistant", content="yes\nü"),)
    assert (transcript.end, transcript.detail) == (EndReason.COMPLETED, "")
    assert transcript.complete is False, "text alone is no complete transcript"


async def test_a_prompt_that_is_too_long_for_a_word_of_a_command_is_no_fault_of_the_agent(attempt) -> None:
    task = a_task(inputs={"prompt": "ü" * (64 * 1024)})
    with pytest.raises(MeasurementError, match=r"131,072 bytes, .* 131,071: have the agent read \{prompt_file\}"):
        await attempt(cli_agent("sh -c 'echo yes' sh {prompt}"), task)
    assert (await attempt(cli_agent("sh -c 'wc -c < \"$1\"' sh {prompt_file}"), task)).output == "131072"


@pytest.mark.usefixtures("needs_bubblewrap")
@pytest.mark.parametrize(("network", "end"), [(False, EndReason.CRASHED), (True, EndReason.COMPLETED)])
async def test_an_agent_has_the_network_that_the_task_gives(attempt, port: int, network: bool, end: EndReason) -> None:
    agent = python("import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))", str(port))
    assert (await attempt(agent, a_task(network=network))).end is end


@pytest.mark.parametrize(
    ("command", "end", "output", "detail"),
    [
        ("sh -c 'echo half; echo no key >&2; exit 1'", EndReason.CRASHED, "half", "exit code 1: no key"),
        (f"sh -c 'echo yes; truncate -s 33M {LEFT}'", EndReason.UNREADABLE, "yes", f"{TRANSCRIPT} larger than 32 MiB"),
        (f"sh -c 'echo [ > {LEFT}; exit 3'", EndReason.CRASHED, "", "exit code 3: "),
        (f"sh -c 'ln -s {{prompt_file}} {LEFT}; echo yes'", EndReason.COMPLETED, "yes", ""),
        (f"sh -c 'mkfifo {LEFT}; echo yes'", EndReason.COMPLETED, "yes", ""),
    ],
    ids=["crash", "endless transcript", "half a transcript", "link", "pipe"],
)
async def test_how_a_command_ended(attempt, command: str, end: EndReason, output: str, detail: str) -> None:
    transcript = await attempt(cli_agent(command))
    assert (transcript.end, transcript.output, transcript.detail) == (end, output, detail)


async def test_the_end_of_a_long_complaint_is_kept(attempt) -> None:
    transcript = await attempt(python("import sys; sys.exit('x' * 100_000 + 'the reason')"))
    assert transcript.detail.endswith("the reason")
    assert len(transcript.detail) < 20_000


@pytest.mark.parametrize("transcript", ["", f"; echo [ > {LEFT}"], ids=["", "half a transcript"])
async def test_time_that_is_up_ends_the_agent(attempt, transcript: str) -> None:
    ended = await attempt(cli_agent(f"sh -c 'echo so far{transcript}; touch ready; sleep 600'"), hangs=True)
    assert (ended.end, ended.output) == (EndReason.TIMED_OUT, "so far")


@pytest.mark.parametrize(("code", "hangs"), [("", False), ("; exit 3", False), ("; touch ready; sleep 600", True)])
async def test_the_end_of_standard_error_is_kept_however_an_agent_ends(attempt, code: str, hangs: bool) -> None:
    loud = "for n in $(seq 5000); do echo line $n >&2; done; echo answer"
    transcript = await attempt(cli_agent(f"sh -c '{loud}{code}'"), hangs=hangs)
    assert transcript.printed.endswith("line 4999\nline 5000")
    assert len(transcript.printed) <= LONGEST_DETAIL
    assert transcript.output == "answer"


async def test_a_key_that_is_not_set_is_one_line(attempt) -> None:
    transcript = await attempt(python("import os; os.environ['NO_SUCH_API_KEY']"))
    assert (transcript.end, transcript.detail) == (EndReason.CRASHED, "exit code 1: NO_SUCH_API_KEY is not set")
    assert "Traceback" in transcript.printed


@pytest.mark.parametrize(
    ("command", "end"), [("yes", EndReason.OUTPUT_LIMIT), ("sh -c 'kill -TERM $$'", EndReason.CRASHED)]
)
async def test_printing_without_end_and_a_signal_end_an_agent(attempt, command: str, end: EndReason) -> None:
    assert (await attempt(cli_agent(command))).end is end


async def test_every_turn_is_told_what_went_before(sandbox_of) -> None:
    agent = python("""
        import json, os
        told = dict((name, os.environ["PASSGATE_" + name]) for name in ("TURN", "SESSION"))
        prompt = open(os.environ["PASSGATE_PROMPT_FILE"]).read()
        print(json.dumps([prompt, json.load(open(os.environ["PASSGATE_HISTORY"])), told]))
    """)
    call = ToolCall(tool="find", arguments={"q": 1}, result=[1])
    history = (Message(role="user", content="Hé?"), Message(role="assistant", content="What?", tool_calls=(call,)))
    async with sandbox_of() as sandbox:
        first = await one_turn(agent, a_task(), sandbox, session="s-1")
        second = await one_turn(agent, a_task(), sandbox, prompt="Now.", turn=1, history=history, session="s-1")
    assert json.loads(first.output) == ["Say yes.", [], {"TURN": "0", "SESSION": "s-1"}]
    prompt, told, variables = json.loads(second.output)
    assert (prompt, variables) == ("Now.", {"TURN": "1", "SESSION": "s-1"})
    assert [Message.model_validate(message) for message in told] == list(history)


async def test_turns_share_the_workspace_and_not_the_transcript(sandbox_of) -> None:
    agent = python("""
        import os, pathlib
        if os.environ["PASSGATE_TURN"] == "0":
            pathlib.Path("left").write_text("by the first turn")
            pathlib.Path(os.environ["PASSGATE_TRANSCRIPT"]).write_text('{"output": "first"}')
        else:
            print(pathlib.Path("left").read_text())
    """)
    async with sandbox_of() as sandbox:
        turns = [await one_turn(agent, a_task(), sandbox, turn=turn) for turn in range(2)]
    assert [turn.output for turn in turns] == ["first", "by the first turn"]


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


async def test_an_agent_that_is_called_off_is_gone(sandbox_of, marked: Marked) -> None:
    hangs = f"mktemp begun.XXXXXX; sleep 600; : {marked.word}"
    agent = cli_agent(f"""sh -c '(setsid sh -c "{hangs}") & {hangs}'""")
    async with sandbox_of() as sandbox:
        turn = one_turn(agent, a_task(), sandbox, seconds=LONG)
        await call_off(turn, lambda: len(list(sandbox.workspace.glob("begun.*"))) == 2)
        assert marked.running == []


def writes(transcript: str) -> CliAgent:
    return python(f"import os; open(os.environ['PASSGATE_TRANSCRIPT'], 'w').write({transcript!r})")


async def test_a_transcript_file_is_the_transcript_but_for_its_end(attempt) -> None:
    """How the agent ended is what we saw."""
    call = {"tool": "find", "arguments": {"q": 1}, "result": [1], "is_error": True}
    usage = {"tokens_in": 5, "tokens_out": 2, "cost_usd": 0.1}
    messages = [
        {"role": "user", "content": "Say yes."},
        {"role": "assistant", "tool_calls": [call], "usage": usage, "latency_ms": 12.5},
        {"role": "assistant", "content": "yes"},
    ]
    transcript = await attempt(writes(json.dumps({"messages": messages, "end": "crashed", "detail": "made up"})))
    assert transcript == Transcript.model_validate({"messages": messages, "output": "yes"})
    assert (transcript.end, transcript.complete) == (EndReason.COMPLETED, True)


@pytest.mark.parametrize("content", ["", '{"messages": [{"role": "robot"}]}', "[" * 100_000])
async def test_an_agent_that_leaves_no_usable_transcript_has_failed(attempt, content: str) -> None:
    """`test_transcripts.py` has all that is none."""
    transcript = await attempt(writes(content))
    assert transcript.end is EndReason.UNREADABLE
    assert "transcript" in transcript.detail


@pytest.fixture
def environment(attempt):
    """The variables of a command in a trial."""

    async def _environment(**changes) -> dict[str, str]:
        printed = (await attempt(cli_agent("env -0"), **changes)).output
        return dict(line.split("=", 1) for line in printed.split("\0") if line)

    return _environment


async def test_a_command_runs_in_the_workspace_with_our_environment(environment, monkeypatch) -> None:
    monkeypatch.setenv("MY_AGENT_KEY", "k-1")
    monkeypatch.setenv("PASSGATE_JUDGE_API_KEY", "k-judge")
    of_a_hook = ("GIT_INDEX_FILE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_AUTHOR_DATE")
    for name in of_a_hook:
        monkeypatch.setenv(name, ".git/index of a hook")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("no_proxy", "b.example")
    seen = await environment()
    assert Path(seen["PWD"]).name == "workspace"
    assert Path(seen["HOME"]).parent == Path(seen["PWD"]).parent, "a home of the trial's own"
    assert seen["MY_AGENT_KEY"] == "k-1"
    assert not any("JUDGE" in name for name in seen), "the judge's key is not the agent's"
    assert seen.keys().isdisjoint(of_a_hook), "nor is the repository whose hook has started passgate"
    assert seen.get("NO_PROXY") is None


async def test_the_way_to_the_models_comes_last(environment, monkeypatch) -> None:
    for name, value in {"OPENAI_API_KEY": "the real one", "MODE": "ours", "OTHER": "ours"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("no_proxy", raising=False)
    wanted = {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere", "PASSGATE_TRIAL": "7"}
    access = Metered(TRIAL_URL="here", NO_PROXY="a.example")
    seen = await environment(task=a_task(workspace={"environment": wanted}), access=access)
    assert seen.items() >= {**access.variables, "NO_PROXY": seen["no_proxy"]}.items()
    assert seen["no_proxy"] == "a.example,127.0.0.1,localhost,::1"
    assert (seen["MODE"], seen["OTHER"], seen["PASSGATE_TRIAL"]) == ("of the task", "ours", "0")
    assert "the real one" not in seen.values()
