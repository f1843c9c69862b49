"""Python functions as agents, whatever they do."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.budgets.access import Unmetered
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.transcript import EndReason, Message, Transcript


def says_yes(attempt: Attempt) -> str:
    return "yes"


async def says_yes_later(attempt: Attempt) -> str:
    await asyncio.sleep(0.01)
    return "yes"


def gives_a_dictionary(attempt: Attempt) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": "yes"}]}


def gives_a_transcript(attempt: Attempt) -> Transcript:
    return Transcript(messages=(Message(role="assistant", content="yes"),), output="yes")


@pytest.fixture(autouse=True)
def _module_path() -> Iterator[None]:
    """Agents are looked for in the working folder, which is another one in each test."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("agent_under_test"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("function", "complete"),
    [(says_yes, False), (says_yes_later, False), (gives_a_dictionary, True), (gives_a_transcript, True)],
)
async def test_the_answer_is_what_the_function_gives(attempt, function, complete: bool) -> None:
    transcript = await attempt(PythonAgent(function))
    assert (transcript.output, transcript.end) == ("yes", EndReason.COMPLETED)
    assert transcript.complete is complete


async def test_what_is_async_without_saying_so_is_waited_for(attempt) -> None:
    class Agent:
        async def __call__(self, attempt: Attempt) -> str:
            await asyncio.sleep(0.01)
            return "yes"

    assert (await attempt(PythonAgent(Agent()))).output == "yes"
    assert (await attempt(PythonAgent(lambda given: says_yes_later(given)))).output == "yes"


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_function_is_told_everything(attempt, is_async: bool) -> None:
    told: list[Attempt] = []

    def plain(attempt: Attempt) -> str:
        (attempt.workspace / "made").write_text("x")
        told.append(attempt)
        return str(attempt.workspace.is_dir())

    async def awaited(attempt: Attempt) -> str:
        return plain(attempt)

    task = a_task(inputs={"prompt": "Say yes.", "n": 1})
    transcript = await attempt(PythonAgent(awaited if is_async else plain), task, trial=2)
    assert transcript.output == "True"
    (only,) = told
    assert (only.task_id, only.trial, only.prompt, only.inputs) == ("say-yes", 2, "Say yes.", task.inputs)
    assert only.budgets == task.budgets


class OwnError(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ValueError("no key"), "ValueError: no key"),
        (TimeoutError("the model did not answer"), "TimeoutError: the model did not answer"),
        (SystemExit(3), "SystemExit(3)"),
        (KeyboardInterrupt(), "KeyboardInterrupt()"),
        (asyncio.CancelledError(), ""),
        (RecursionError("deep"), "RecursionError: deep"),
        (ValueError("a\ud800b"), "ValueError: a?b"),
        (ValueError("x" * 10_000), "ValueError: xxx"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_whatever_the_function_raises_is_a_crash(
    attempt, error: BaseException, detail: str, is_async: bool
) -> None:
    def plain(attempt: Attempt) -> str:
        raise error

    async def awaited(attempt: Attempt) -> str:
        raise error

    agent = PythonAgent(awaited if is_async else plain)
    transcript = await attempt(agent)
    assert transcript.end is EndReason.CRASHED
    assert detail in transcript.detail
    assert len(transcript.detail) <= 2000
    assert transcript.complete is False
    assert (await attempt(PythonAgent(says_yes_later))).output == "yes"


async def test_an_agent_that_exits_leaves_its_other_trials_alone(attempt) -> None:
    async def exits_once(given: Attempt) -> str:
        if given.trial == 0:
            sys.exit(1)
        return "yes"

    agent = PythonAgent(exits_once)
    assert (await attempt(agent, trial=0, seconds=5)).end is EndReason.CRASHED
    assert (await attempt(agent, trial=1, seconds=5)).output == "yes"


async def test_what_the_agent_calls_unmeasurable_is(attempt) -> None:
    def provider_is_down(attempt: Attempt) -> str:
        raise MeasurementError("the provider is down", transient=True)

    with pytest.raises(MeasurementError, match="provider is down") as caught:
        await attempt(PythonAgent(provider_is_down))
    assert caught.value.transient is True


@pytest.mark.parametrize("answer", [None, 3, b"yes", ["yes"], {"message": "yes"}])
async def test_an_answer_of_another_kind_cannot_be_measured(attempt, answer: Any) -> None:
    with pytest.raises(MeasurementError, match="not a t"):
        await attempt(PythonAgent(lambda _: answer))


async def test_an_agent_that_hangs_runs_out_of_time(attempt) -> None:
    async def hangs(attempt: Attempt) -> str:
        await asyncio.sleep(3600)
        return "never"

    started = time.monotonic()
    transcript = await attempt(PythonAgent(hangs), seconds=0.3)
    assert transcript.end is EndReason.TIMED_OUT
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agent_that_blocks_holds_up_nobody_else(attempt, is_async: bool) -> None:
    release = threading.Event()

    def blocks(attempt: Attempt) -> str:
        release.wait(20)
        return "late"

    async def blocks_its_loop(attempt: Attempt) -> str:
        return blocks(attempt)

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    try:
        transcript = await attempt(PythonAgent(blocks_its_loop if is_async else blocks), seconds=0.5)
    finally:
        ticking.cancel()
        release.set()
    assert transcript.end is EndReason.TIMED_OUT
    assert ticks >= 5, "our own event loop went on"


async def test_trials_run_at_the_same_time(attempt) -> None:
    both = threading.Barrier(2, timeout=10)

    def waits_for_the_other(attempt: Attempt) -> str:
        both.wait()
        return "yes"

    agent = PythonAgent(waits_for_the_other)
    transcripts = await asyncio.gather(attempt(agent, trial=0), attempt(agent, trial=1))
    assert [transcript.output for transcript in transcripts] == ["yes", "yes"]


async def test_a_trial_that_is_called_off_ends_the_agent(attempt) -> None:
    ended = threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hangs(attempt: Attempt) -> str:
        loop.call_soon_threadsafe(begun.set)
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return "never"

    running = asyncio.create_task(attempt(PythonAgent(hangs)))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_function_of_the_working_folder(attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent_under_test.py").write_text("async def answer(attempt):\n    return attempt.prompt.upper()\n")
    agent = PythonAgent.from_target("agent_under_test:answer")
    assert (await attempt(agent)).output == "SAY YES."


@pytest.mark.parametrize("target", ["", "module", "module:", ":function"])
def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="needs the form python:MODULE:FUNCTION"):
        PythonAgent.from_target(target)


@pytest.mark.parametrize(
    ("content", "function", "reason"),
    [
        (None, "answer", "ModuleNotFoundError"),
        ("def other(attempt): ...", "answer", "has no attribute 'answer'"),
        ("def answer(", "answer", "SyntaxError"),
        ("raise RuntimeError('no key')", "answer", "RuntimeError: no key"),
        ("1 / 0", "answer", "ZeroDivisionError"),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, function: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "agent_under_test_broken.py").write_text(content)
    with pytest.raises(UsageError, match="cannot be imported") as caught:
        PythonAgent.from_target(f"agent_under_test_broken:{function}")
    assert reason in str(caught.value)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a function"):
        PythonAgent.from_target("math:pi")


class Metered(Unmetered):
    """What an agent is told of a meter that nobody calls in these tests."""

    def __init__(self, **variables: str) -> None:
        super().__init__()
        self.variables = variables


def sees(attempt: Attempt) -> str:
    return os.environ["TRIAL_KEY"]


async def sees_later(attempt: Attempt) -> str:
    await asyncio.sleep(0.05)
    return os.environ["TRIAL_KEY"]


@pytest.mark.parametrize("function", [sees, sees_later])
async def test_every_trial_has_its_own_way_to_the_models(attempt, function) -> None:
    agent = PythonAgent(function)
    trials = (attempt(agent, trial=trial, access=Metered(TRIAL_KEY=f"k-{trial}")) for trial in range(6))
    assert [transcript.output for transcript in await asyncio.gather(*trials)] == [f"k-{n}" for n in range(6)]
    assert "TRIAL_KEY" not in os.environ


async def test_a_proxy_is_not_asked_for_the_meter(attempt, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "a.example")
    monkeypatch.delenv("no_proxy", raising=False)

    def shows(given: Attempt) -> str:
        return os.environ["NO_PROXY"] + "|" + os.environ.get("no_proxy", "unset")

    both = "a.example,127.0.0.1,localhost"
    assert (await attempt(PythonAgent(shows), access=Metered(TRIAL_KEY="k"))).output == f"{both}|{both}"
    assert (await attempt(PythonAgent(shows))).output == "a.example|unset"


async def test_a_real_client_takes_the_trials_way(attempt, monkeypatch) -> None:
    openai = pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "the real one")

    def makes_clients(given: Attempt) -> str:
        with openai.OpenAI() as client:
            return f"{client.base_url} {client.api_key}"

    async def makes_async_clients(given: Attempt) -> str:
        async with openai.AsyncOpenAI() as client:
            return f"{client.base_url} {client.api_key}"

    for function in (makes_clients, makes_async_clients):
        access = Metered(OPENAI_BASE_URL="http://127.0.0.1:1/t/v1", OPENAI_API_KEY="of-the-trial")
        transcript = await attempt(PythonAgent(function), access=access)
        assert transcript.output == "http://127.0.0.1:1/t/v1/ of-the-trial"


def prints(attempt: Attempt) -> str:
    print(f"trial {attempt.trial}")
    print("aside", file=sys.stderr)
    return "yes"


async def prints_later(attempt: Attempt) -> str:
    await asyncio.sleep(0.02)
    return prints(attempt)


@pytest.mark.parametrize("function", [prints, prints_later])
async def test_what_it_prints_is_its_trials(attempt, capsys, function) -> None:
    agent = PythonAgent(function)
    transcripts = await asyncio.gather(*(attempt(agent, trial=trial) for trial in range(4)))
    assert [transcript.printed for transcript in transcripts] == [f"trial {n}\naside\n" for n in range(4)]
    assert {transcript.detail for transcript in transcripts} == {""}
    print("ours")
    assert capsys.readouterr() == ("ours\n", "")


@pytest.mark.parametrize(
    ("error", "end"), [(ValueError("no key"), EndReason.CRASHED), (asyncio.CancelledError(), EndReason.CRASHED)]
)
async def test_what_a_crashing_agent_printed_is_kept(attempt, error: BaseException, end: EndReason) -> None:
    async def crashes(attempt: Attempt) -> str:
        print("before")
        raise error

    transcript = await attempt(PythonAgent(crashes))
    assert (transcript.end, transcript.printed) == (end, "before\n")


async def test_a_thread_that_ran_out_of_time_prints_nowhere(attempt, capsys) -> None:
    release, done = threading.Event(), threading.Event()

    def prints_late(attempt: Attempt) -> str:
        print("before")
        release.wait(20)
        print("after")
        done.set()
        return "late"

    transcript = await attempt(PythonAgent(prints_late), seconds=0.2)
    assert (transcript.end, transcript.printed) == (EndReason.TIMED_OUT, "before\n")
    release.set()
    assert await asyncio.to_thread(done.wait, 10)
    assert capsys.readouterr() == ("", "")


async def test_what_a_transcript_says_was_printed_stays_where_nothing_is(attempt) -> None:
    assert (await attempt(PythonAgent(lambda _: {"output": "yes", "printed": "of old"}))).printed == "of old"


async def test_what_a_module_logs_is_its_trials(attempt, tmp_path: Path, monkeypatch, capfd) -> None:
    """Its handler was made before any trial began."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent_under_test_logs.py").write_text(
        "import logging\n"
        "log = logging.getLogger('agent_under_test')\n"
        "log.addHandler(logging.StreamHandler())\n"
        "def answer(attempt):\n"
        "    log.warning('of trial %d', attempt.trial)\n"
        "    return 'yes'\n"
    )
    agent = PythonAgent.from_target("agent_under_test_logs:answer")
    assert (await attempt(agent, trial=2)).printed == "of trial 2\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("is_async", [False, True])
async def test_every_turn_is_told_what_went_before(sandbox_of, is_async: bool) -> None:
    def plain(given: Attempt) -> str:
        print("turn", given.turn)
        return f"{given.turn} {given.prompt} {given.session} {[message.content for message in given.history]}"

    async def awaited(given: Attempt) -> str:
        return plain(given)

    agent = PythonAgent(awaited if is_async else plain)
    history = (Message(role="user", content="a"), Message(role="assistant", content="b"))
    async with sandbox_of() as sandbox:
        first = await one_turn(agent, a_task(), sandbox, prompt="a", session="s")
        second = await one_turn(agent, a_task(), sandbox, prompt="c", session="s", turn=1, history=history)
    assert (first.output, second.output) == ("0 a s []", "1 c s ['a', 'b']")
    assert (first.printed, second.printed) == ("turn 0\n", "turn 1\n")


async def test_the_variables_of_the_workspace_are_set_for_the_agent(attempt, monkeypatch) -> None:
    def sees(attempt: Attempt) -> str:
        return f"{os.environ['MODE']} {os.environ['OPENAI_BASE_URL']}"

    monkeypatch.setenv("MODE", "of the shell")
    task = a_task(workspace={"environment": {"MODE": "of the task", "OPENAI_BASE_URL": "http://elsewhere"}})
    metered = Unmetered()
    metered.variables = {"OPENAI_BASE_URL": "http://meter"}
    assert (await attempt(PythonAgent(sees), task, access=metered)).output == "of the task http://meter"
    assert os.environ["MODE"] == "of the shell"
