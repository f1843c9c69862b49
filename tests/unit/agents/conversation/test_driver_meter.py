"""The agent's part of a trial beside a meter, which may end it and has the last word on it."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.meters import open_served_meter
from tests.unit.agents.conversation.conftest import SCRIPTED, Listener, words
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Says

from passgate.tasks.agents import make_agent, parse_agent
from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.access import TrialTranscript, Unmetered
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint, Upstreams
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Transcript


class OverAfter(Unmetered):
    """A meter that ends the trial after some seconds, for a reason of its own."""

    def __init__(self, seconds: float, end: EndReason = EndReason.OVER_BUDGET) -> None:
        super().__init__()
        self._seconds = seconds
        self._end = end
        self.reported: list[Transcript] = []
        self.is_over = False

    def over(self) -> asyncio.Future[None]:
        async def later() -> None:
            await asyncio.sleep(self._seconds)
            self.is_over = True

        self._later = asyncio.ensure_future(later())
        return self._later

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        self.reported.append(reported)
        return TrialTranscript(reported.model_copy(update={"end": self._end}) if self.is_over else reported)


async def test_the_meter_has_the_last_word(talk) -> None:
    class Remarks(Unmetered):
        async def transcript(self, reported: Transcript) -> TrialTranscript:
            return TrialTranscript(reported.model_copy(update={"output": f"{reported.output}, says the meter"}))

    transcript = await talk(Listener(), SCRIPTED, access=Remarks())
    assert transcript.output == "You said three, says the meter"
    assert len(transcript.messages) == 6


async def test_what_the_meter_cannot_measure_is_not_measured(talk) -> None:
    class Spent(Unmetered):
        async def transcript(self, reported: Transcript) -> TrialTranscript:
            return TrialTranscript(reported, CostCapError("the cap is reached"))

    with pytest.raises(CostCapError):
        await talk(Listener(), access=Spent())


async def test_a_trial_that_is_over_gives_the_agent_a_little_time(talk) -> None:
    access = OverAfter(0.1)
    transcript = await talk(Listener(pause=0.5), SCRIPTED, access=access)
    assert transcript.end is EndReason.OVER_BUDGET
    assert words(transcript) == ["user: one", "assistant: You said one"], "no other turn is begun"


async def test_an_agent_that_goes_on_regardless_is_ended(talk) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def goes_on(attempt: Attempt) -> str:
        try:
            await asyncio.sleep(600)
        finally:
            loop.call_soon_threadsafe(ended.set)
        return "never"

    access = OverAfter(0.1)
    started = time.monotonic()
    transcript = await talk(goes_on, access=access, grace=0.3)
    assert 0.4 <= time.monotonic() - started < 60
    assert transcript.end is EndReason.OVER_BUDGET
    assert words(transcript) == ["user: Say yes."]
    (reported,) = access.reported
    assert reported.end is EndReason.CRASHED, "which no meter takes for a completed trial"
    assert "ended 0.3 s after" in reported.detail
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_command_that_goes_on_regardless_is_ended_with_its_children(talk, suites: Path, tmp_path: Path) -> None:
    class Look(OverAfter):
        async def transcript(self, reported: Transcript) -> TrialTranscript:
            self.is_over = True
            return await super().transcript(reported)

    agent = make_agent(parse_agent("cli:sh -c 'echo begun > begun; (sleep 1.5; touch ended) & sleep 60'"), suites)
    seen: list[Sequence[str]] = []

    class Watching(Agent):
        async def run(self, task: Any, attempt: Attempt, *rest: Any, **more: Any) -> Transcript:
            try:
                return await agent.run(task, attempt, *rest, **more)
            finally:
                seen.append(sorted(file.name for file in attempt.workspace.iterdir()))
                await asyncio.sleep(1.8)
                seen.append(sorted(file.name for file in attempt.workspace.iterdir()))

    transcript = await talk(Watching(), access=Look(0.5), grace=0.2)
    assert transcript.end is EndReason.OVER_BUDGET
    assert seen == [["begun"], ["begun"]]


@pytest.mark.parametrize("end", [EndReason.OVER_BUDGET, EndReason.FORBIDDEN_CALL])
async def test_an_agent_that_breaks_because_the_trial_is_over_has_ended_with_it(talk, end: EndReason) -> None:
    access = OverAfter(0, end)

    async def breaks(attempt: Attempt) -> str:
        await asyncio.sleep(0.1)
        raise MeasurementError("what it wrote cannot be read")

    assert (await talk(breaks, access=access)).end is end


async def test_what_an_agent_could_not_help_is_not_measured(talk) -> None:
    def is_down(attempt: Attempt) -> str:
        raise MeasurementError("its database is down", transient=True)

    with pytest.raises(MeasurementError, match="its database is down"):
        await talk(is_down)


async def test_what_the_meter_knows_better_is_told_instead(talk) -> None:
    class Knows(Unmetered):
        async def transcript(self, reported: Transcript) -> TrialTranscript:
            return TrialTranscript(reported, MeasurementError("the provider is down"))

    def is_down(attempt: Attempt) -> str:
        raise MeasurementError("something is down")

    with pytest.raises(MeasurementError, match="the provider is down"):
        await talk(is_down, access=Knows())


async def test_a_conversation_through_the_meter(talk, suites: Path, upstream: ScriptedUpstream) -> None:
    look = {"name": "look", "description": "Looks.", "command": "echo seen"}
    task = a_task(inputs={"prompt": "one", "system": "Be kind."}, tools=[look], user={"says": ["two"]})
    upstream.script = [Says("I look.", calls=[("look", {})]), Says("It is there."), Says("Goodbye.")]
    spec = AgentSpec(
        kind=AgentKind.OPENAI,
        target="model-1",
        upstreams=Upstreams(openai=Endpoint(base_url=upstream.openai_base_url)),
    )
    async with open_served_meter(spec, PriceTable(), CostCap(), environment={}) as meter:
        with meter.trial(Budgets(max_steps=3), lambda call: False) as access:
            transcript = await talk(make_agent(spec, suites), task, access=access)
    assert words(transcript) == [
        *("system: Be kind.", "user: one", "assistant: I look.", "assistant: It is there."),
        *("user: two", "assistant: Goodbye."),
    ]
    assert transcript.tool_calls[0].result == "seen\n"
    assert transcript.tool_calls[0].is_error is False
    assert [message.usage.tokens_in for message in transcript.steps] == [100, 100, 100]
    assert (transcript.end, transcript.complete, transcript.output) == (EndReason.COMPLETED, True, "Goodbye.")
    assert upstream.calls[2].body["messages"][-1] == {"role": "user", "content": "two"}
