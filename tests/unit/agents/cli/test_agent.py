"""Commands as agents, really run."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.meters import open_served_meter
from tests.unit.agents.cli.programs import cli_agent, python
from tests.unit.agents.conftest import one_turn
from tests.unit.conftest import LONG, Marked
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says
from tests.waiting import until

from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint, Upstreams
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, ToolCall
from passgate.tasks.sandboxes.workbench import Workbench


async def test_what_a_command_prints_is_its_answer(attempt) -> None:
    transcript = await attempt(python("import sys; print('  yes'); print('ü'); print('aside', file=sys.stderr)"))
    assert transcript.output == "yes\nü"
    assert transcript.messages == (Message(role="assistant", content="yes\nü"),)
    assert (transcript.end, transcript.detail) == (EndReason.COMPLETED, "")
    assert transcript.complete is False, "text alone is no complete transcript"


@pytest.mark.usefixtures("needs_bubblewrap")
@pytest.mark.parametrize(("network", "end"), [(False, EndReason.CRASHED), (True, EndReason.COMPLETED)])
async def test_an_agent_has_the_network_that_the_task_gives(attempt, port: int, network: bool, end: EndReason) -> None:
    agent = python("import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))", str(port))
    assert (await attempt(agent, a_task(network=network))).end is end


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
    transcript = await attempt(cli_agent("sh -c 'echo so far; touch ready; sleep 600'"), hangs=True)
    assert transcript.end is EndReason.TIMED_OUT
    assert transcript.output == "so far"


async def test_an_agent_that_prints_without_end_is_ended(attempt) -> None:
    assert (await attempt(cli_agent("yes"))).end is EndReason.OUTPUT_LIMIT


async def test_a_signal_is_a_crash(attempt) -> None:
    transcript = await attempt(cli_agent("sh -c 'kill -TERM $$'"))
    assert transcript.end is EndReason.CRASHED


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
        turns = [await one_turn(python(program), a_task(), sandbox, turn=turn) for turn in range(2)]
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
        running = asyncio.create_task(one_turn(agent, a_task(), sandbox, seconds=LONG))
        await until(lambda: len(list(sandbox.workspace.glob("begun.*"))) == 2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert marked.running == []


CALLS_ITS_MODEL = """
    import json, os, urllib.error, urllib.request
    asked = {"model": "model-1", "stream": True, "messages": [{"role": "user", "content": "Say yes."}]}
    for _ in range(3):
        try:
            url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
            with urllib.request.urlopen(url, json.dumps(asked).encode()) as answer:
                print(answer.status, b'{"content": "yes"}' in answer.read())
        except urllib.error.HTTPError as error:
            print(error.code, os.environ["HTTPS_PROXY"])
"""


@pytest.mark.usefixtures("needs_bubblewrap")
async def test_an_agent_without_network_calls_its_model_through_the_meter(
    suites: Path, upstream: ScriptedUpstream, monkeypatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    upstream.says(Says("yes"))
    spec = AgentSpec(kind=AgentKind.CLI, upstreams=Upstreams(openai=Endpoint(base_url=upstream.openai_base_url)))
    async with open_served_meter(spec, PriceTable(), CostCap(), environment={}) as meter:
        with (
            Workbench(suites, processes=2, bridge=meter.bridge) as workbench,
            meter.trial(Budgets(max_steps=2), lambda _: False) as access,
        ):
            async with workbench.sandbox(a_task()) as sandbox:
                assert (sandbox.isolation, sandbox.network) == ("bubblewrap", False)
                reported = await one_turn(python(CALLS_ITS_MODEL), a_task(), sandbox, access=access)
                transcript = (await access.transcript(reported)).checked()
    assert reported.output == "200 True\n200 True\n400 http://127.0.0.1:9"
    assert upstream.count == 2
    assert (transcript.end, len(transcript.steps)) == (EndReason.OVER_BUDGET, 2)
