"""The agent's part of a trial: one turn, or a conversation with a scripted user, beside a meter that may end it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.meters import OverHttp, asking, metered_trial
from tests.unit.agents.conversation.conftest import SCRIPTED, Listener, Watch, listened, words
from tests.unit.conftest import LONG, LoopClock, call_off
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

from passgate.tasks.agents import make_agent
from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.access import TrialTranscript, Unmetered
from passgate.tasks.model.transcript import EndReason, Transcript


async def test_without_a_user_there_is_one_turn(talk) -> None:
    listener = Listener()
    task = a_task(inputs={"prompt": "one", "order": 7})
    access = Unmetered()
    access.variables = {"OPENAI_BASE_URL": "http://meter"}
    transcript = await talk(listener, task, trial=2, access=access)
    assert words(transcript) == listened("one")
    assert transcript.output == "You said one"
    (attempt,) = listener.attempts
    assert (attempt.task_id, attempt.trial, attempt.prompt, attempt.turn) == ("say-yes", 2, "one", 0)
    assert (attempt.inputs, attempt.budgets, attempt.history) == ({"prompt": "one", "order": 7}, task.budgets, ())
    assert attempt.workspace.name == "workspace"
    assert attempt.variables == access.variables, "which lead to its models"


async def test_a_scripted_user_says_one_message_after_the_other_in_one_session(talk) -> None:
    listeners = Listener(), Listener()
    transcript, _ = [await talk(listener, SCRIPTED) for listener in listeners]
    assert words(transcript) == listened("one", "two", "three")
    assert transcript.output == "You said three"
    attempts = listeners[0].attempts
    assert [(attempt.turn, len(attempt.history)) for attempt in attempts] == [(0, 0), (1, 2), (2, 4)]
    assert all(attempt.inputs == {"prompt": "one", "order": 7} for attempt in attempts)
    (first,), (second,) = [{attempt.session for attempt in listener.attempts} for listener in listeners]
    assert first != second
    assert len(first) == 32


async def test_a_conversation_ends_with_the_agent(talk) -> None:
    def breaks(attempt: Attempt) -> str:
        if attempt.turn == 1:
            raise ValueError("no idea")
        return "fine"

    transcript = await talk(breaks, SCRIPTED)
    assert transcript.end is EndReason.CRASHED
    assert words(transcript) == ["user: one", "assistant: fine", "user: two"]
    assert transcript.complete is False


async def test_all_turns_share_the_time_and_without_any_none_is_begun(talk, watch: Watch) -> None:
    given: list[float] = []

    class TakesThreeSeconds(Agent):
        async def run(self, *_: Any, seconds: float) -> Transcript:
            given.append(seconds)
            watch.now += 3
            return Transcript(output="done")

    transcript = await talk(TakesThreeSeconds(), SCRIPTED, seconds=6)
    assert given == [6, 3]
    assert transcript.end is EndReason.TIMED_OUT
    assert words(transcript) == ["user: one", "user: two", "user: three"]
    assert transcript.wall_time_seconds == 6
    assert (await talk(TakesThreeSeconds(), SCRIPTED, seconds=6.5)).end is EndReason.COMPLETED
    assert given == [6, 3, 6.5, 3.5, 0.5]


async def test_what_calls_wait_is_not_the_agents_time(talk, watch: Watch) -> None:
    class Waited(Unmetered):
        seconds_waited = 2.0

    def takes_three_seconds(attempt: Attempt) -> str:
        watch.now += 3
        return "done"

    assert (await talk(takes_three_seconds, access=Waited())).wall_time_seconds == 1


async def test_a_trial_that_is_called_off_ends_the_agent(talk) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Waits(Agent):
        async def run(self, *_: Any, seconds: float) -> Transcript:
            begun.set()
            try:
                await asyncio.sleep(600)
            finally:
                await asyncio.sleep(0.05)
                ended.set()
            return Transcript()

    await call_off(talk(Waits()), begun.is_set)
    assert ended.is_set(), "and its end is waited for"


GIVEN = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "I look.", "tool_calls": [{"tool": "look", "result": "seen"}]},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": [{"type": "text", "value": "one"}, {"type": "file", "value": "a.md", "text": "A"}]},
]
FLATTENED = (
    "@[System]:\nBe kind.\n\n@[User]:\nHello.\n\n@[Assistant]:\nI look.\n\n@[Assistant]:\nHi.\n\n"
    '@[User]:\none\n\n<file path="a.md">\nA\n</file>'
)


async def test_a_function_is_given_the_messages_and_their_text(talk, suites: Path) -> None:
    (suites / "a.md").write_text("A")
    attempts: list[Attempt] = []

    def reads(attempt: Attempt) -> str:
        attempts.append(attempt)
        return f"answer {attempt.turn} of {attempt.files['a.md'].read_text()}"

    task = a_task(inputs={}, messages=GIVEN, user={"says": ["two", "three"]})
    transcript = await talk(reads, task)
    assert [attempt.prompt for attempt in attempts] == [FLATTENED, "two", "three"]
    assert all(attempt.messages == task.messages for attempt in attempts)
    assert [len(attempt.history) for attempt in attempts] == [0, 2, 4]
    later = [[message.content for message in attempt.history_since_messages] for attempt in attempts]
    assert later == [[], ["answer 0 of A"], ["answer 0 of A", "two", "answer 1 of A"]]
    assert [step.content for step in transcript.steps] == ["answer 0 of A", "answer 1 of A", "answer 2 of A"]
    assert transcript.messages[0].content == FLATTENED


async def test_messages_through_the_meter(talk, suites: Path, upstream: ScriptedUpstream) -> None:
    """An agent without a meter, as in a test of its own, gives a transcript of the same messages."""
    (suites / "a.md").write_text("A")
    task = a_task(inputs={}, messages=GIVEN, user={"says": ["two"]})
    spec = asking(upstream.openai_base_url)
    upstream.script = [Says("first"), Says("second")]
    async with metered_trial(spec, lambda call: True, max_steps=2, max_tool_calls=0) as access:
        metered = await talk(make_agent(spec, suites), task, access=access)
    roles = [message["role"] for message in upstream.calls[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    assert upstream.calls[1].body["messages"][:6] == upstream.calls[0].body["messages"]
    assert metered.tool_calls == (), "given calls are none of this trial"
    assert [step.content for step in metered.steps] == ["first", "second"]
    upstream.says(Says("first"), Says("second"))
    direct = await talk(make_agent(spec, suites), task, access=OverHttp(upstream.openai_base_url))
    for transcript in (metered, direct):
        assert (transcript.end, transcript.output) == (EndReason.COMPLETED, "second")
        told = [message.role for message in transcript.messages]
        assert told == ["system", "user", "user", "assistant", "user", "assistant"]
        assert transcript.messages[1].content == "Hello."


class EndsTrials(Unmetered):
    """A meter that ends the trial when it is told to, for a reason of its own."""

    def __init__(self, end: EndReason = EndReason.OVER_BUDGET) -> None:
        super().__init__()
        self._end = end
        self._over = asyncio.get_running_loop().create_future()
        self.reported: list[Transcript] = []

    def over(self) -> asyncio.Future[None]:
        return self._over

    async def end(self) -> None:
        """End the trial, and let those know who wait for that."""
        self._over.set_result(None)
        await asyncio.sleep(0)

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        self.reported.append(reported)
        return TrialTranscript(reported.model_copy(update={"end": self._end}) if self._over.done() else reported)


async def test_the_meter_has_the_last_word(talk) -> None:
    class Remarks(Unmetered):
        async def transcript(self, reported: Transcript) -> TrialTranscript:
            return TrialTranscript(reported.model_copy(update={"output": f"{reported.output}, says the meter"}))

    transcript = await talk(Listener(), SCRIPTED, access=Remarks())
    assert transcript.output == "You said three, says the meter"
    assert len(transcript.messages) == 6


class Fails(Unmetered):
    """A meter that cannot measure a trial."""

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        return TrialTranscript(reported, CostCapError("the cap is reached"))


def is_down(attempt: Attempt) -> str:
    raise MeasurementError("its database is down", transient=True)


@pytest.mark.parametrize(
    ("agent", "access", "what"),
    [
        (Listener(), Fails(), "the cap is reached"),
        (is_down, Fails(), "the cap is reached"),
        (is_down, Unmetered(), "its database is down"),
    ],
    ids=["the meter", "the meter knows better", "the agent"],
)
async def test_what_the_meter_or_the_agent_cannot_measure_is_not_measured(talk, agent, access, what: str) -> None:
    with pytest.raises(MeasurementError, match=what):
        await talk(agent, access=access)


async def test_a_trial_that_is_over_gives_the_agent_a_little_time(talk) -> None:
    access = EndsTrials()

    async def comes_to_an_end(attempt: Attempt) -> str:
        await access.end()
        await asyncio.sleep(0.01)
        return "It is over"

    transcript = await talk(comes_to_an_end, SCRIPTED, access=access, grace=LONG)
    assert transcript.end is EndReason.OVER_BUDGET
    assert words(transcript) == ["user: one", "assistant: It is over"], "no other turn is begun"


async def test_an_agent_that_goes_on_regardless_is_ended(talk, clock: LoopClock) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    access = EndsTrials()

    async def goes_on(attempt: Attempt) -> str:
        await access.end()
        begun.set()
        try:
            await asyncio.sleep(10 * LONG)
        finally:
            await asyncio.sleep(0.05)
            ended.set()
        return "never"

    talking = asyncio.create_task(talk(goes_on, access=access, seconds=10 * LONG, grace=LONG))
    await begun.wait()
    clock.forward(LONG / 2)
    await asyncio.sleep(0.02)
    assert not talking.done()
    transcript = await clock.run_out(talking, begun.is_set, LONG / 2)
    assert transcript.end is EndReason.OVER_BUDGET
    assert words(transcript) == ["user: Say yes."]
    (reported,) = access.reported
    assert reported.end is EndReason.CRASHED, "which no meter takes for a completed trial"
    assert "ended 3600 s after" in reported.detail
    assert ended.is_set(), "and its end is waited for"


@pytest.mark.parametrize("end", [EndReason.OVER_BUDGET, EndReason.FORBIDDEN_CALL])
async def test_an_agent_that_breaks_because_the_trial_is_over_has_ended_with_it(talk, end: EndReason) -> None:
    access = EndsTrials(end)

    async def breaks(attempt: Attempt) -> str:
        await access.end()
        raise MeasurementError("what it wrote cannot be read")

    assert (await talk(breaks, access=access)).end is end
