"""Python functions as agents, whatever they do."""

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import one_turn

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.errors import MeasurementError
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
