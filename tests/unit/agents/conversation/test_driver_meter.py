"""The agent's part of a trial beside a meter, which may end it and has the last word on it."""

import asyncio
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.meters import asking, metered_trial
from tests.unit.agents.conversation.conftest import SCRIPTED, Listener, words
from tests.unit.conftest import LONG, LoopClock
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

from passgate.tasks.agents import make_agent
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.access import TrialTranscript, Unmetered
from passgate.tasks.model.transcript import EndReason, Transcript


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
    clock.forward(LONG / 2)
    transcript = await talking
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


async def test_a_conversation_through_the_meter(talk, suites: Path, upstream: ScriptedUpstream) -> None:
    look = {"name": "look", "description": "Looks.", "command": "echo seen"}
    task = a_task(inputs={"prompt": "one", "system": "Be kind."}, tools=[look], user={"says": ["two"]})
    upstream.script = [Says("I look.", calls=[("look", {})]), Says("It is there."), Says("Goodbye.")]
    spec = asking(upstream.openai_base_url)
    async with metered_trial(spec, max_steps=3) as access:
        transcript = await talk(make_agent(spec, suites), task, access=access)
    assert words(transcript) == [
        *("system: Be kind.", "user: one", "assistant: I look.", "assistant: It is there."),
        *("user: two", "assistant: Goodbye."),
    ]
    assert [(call.result, call.is_error) for call in transcript.tool_calls] == [("seen\n", False)]
    assert [message.usage.tokens_in for message in transcript.steps] == [100, 100, 100]
    assert (transcript.end, transcript.complete, transcript.output) == (EndReason.COMPLETED, True, "Goodbye.")
    assert upstream.calls[2].body["messages"][-1] == {"role": "user", "content": "two"}
