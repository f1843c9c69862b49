"""Real client libraries behind the meter: nothing changes for them until a limit is reached."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.transcript import EndReason, ToolCall, Transcript
from tests.sdk_agents import MODEL, STREAMING, WHOLE, SdkAgent
from tests.unit.metering.conftest import OpenMeter
from tests.upstream import Received, Says

PRICES = PriceTable(models={MODEL: Price(input=1.0, cached_input=0.1, output=10.0)})
LOOKS = Says("I look.", calls=[("look", {"path": "a b.txt"})], tokens_in=120, cached=100, tokens_out=7)
FINDS = Says("It is a letter.", tokens_in=150, tokens_out=5)

AGENTS = [
    *(pytest.param((agent, False), id=name) for name, agent in WHOLE.items()),
    *(pytest.param((agent, True), id=f"{name}, streaming") for name, agent in STREAMING.items()),
]


@pytest.fixture(params=AGENTS)
def sdk(request: pytest.FixtureRequest) -> tuple[SdkAgent, bool]:
    """An agent and whether it streams."""
    return request.param


@dataclass
class Desk:
    """The tools of an agent. `shred` leaves a file behind, so that nothing can hide that it was run."""

    folder: Path
    looked: list[str] = field(default_factory=list)

    @property
    def tools(self) -> dict[str, Callable[[str], str]]:
        return {"look": self._look, "shred": self._shred}

    @property
    def shredded(self) -> bool:
        return (self.folder / "shredded").exists()

    def _look(self, path: str) -> str:
        self.looked.append(path)
        return "Dear reader"

    def _shred(self, path: str) -> str:
        (self.folder / "shredded").write_text(path)
        return "gone"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@dataclass
class Refused:
    """A trial that an error has ended, as the agent saw it and as it was recorded."""

    error: Exception
    transcript: Transcript

    @property
    def tries(self) -> int:
        """How often the client library sent the request that failed, as it says itself in its headers."""
        source: Any = self.error
        while not hasattr(source, "request"):
            source = source.__cause__
        return 1 + int(source.request.headers["x-stainless-retry-count"])


@pytest.fixture
def refused(sdk: tuple[SdkAgent, bool], metered: OpenMeter, desk: Desk) -> Callable[..., Awaitable[Refused]]:
    """Run the agent to the error that ends it."""

    async def _refused(**limits: Any) -> Refused:
        async with metered(**{"prices": PRICES, **limits}) as trial:
            with pytest.raises(Exception, match=r".") as caught:
                await sdk[0](trial.trial, desk.tools, "Go.")
            return Refused(caught.value, await trial.transcript())

    return _refused


def keys_of(request: Received) -> set[str]:
    """What a request shows the provider as its key."""
    shown = {request.headers.get("authorization", "").removeprefix("Bearer "), request.headers.get("x-api-key", "")}
    return shown - {""}


def is_shred(call: ToolCall) -> bool:
    return call.tool == "shred"


def as_tuples(calls: tuple[ToolCall, ...]) -> list[tuple[str, dict[str, Any], bool]]:
    return [(call.tool, call.arguments, call.refused) for call in calls]


async def test_it_works_unchanged_and_the_transcript_is_complete(
    sdk: tuple[SdkAgent, bool], metered, upstream, desk
) -> None:
    agent, streams = sdk
    upstream.says(LOOKS, FINDS)
    keys = {"OPENAI_API_KEY": "the real key", "ANTHROPIC_API_KEY": "the real key"}
    async with metered(prices=PRICES, environment=keys) as trial:
        assert "real" not in trial.trial.api_key
        assert await agent(trial.trial, desk.tools, "Go.") == "It is a letter."
        transcript = await trial.transcript()
    assert desk.looked == ["a b.txt"]
    assert [keys_of(request) for request in upstream.calls] == [{"the real key"}] * 2
    said = [(message.role, message.content) for message in transcript.messages]
    assert said == [("user", "Go."), ("assistant", "I look."), ("assistant", "It is a letter.")]
    first, last = transcript.steps
    (call,) = first.tool_calls
    assert (call.tool, call.arguments, call.result) == ("look", {"path": "a b.txt"}, "Dear reader")
    assert (first.usage.tokens_in, first.usage.tokens_cached, first.usage.tokens_out) == (120, 100, 7)
    assert first.usage.cost_usd == pytest.approx((20 * 1.0 + 100 * 0.1 + 7 * 10.0) / 1e6)
    assert (last.usage.tokens_in, last.usage.tokens_out, last.model) == (150, 5, MODEL)
    assert all((step.latency_ms or 0) > 0 for step in transcript.steps)
    assert all((step.time_to_first_token is not None) == streams for step in transcript.steps)
    assert transcript.complete
    assert transcript.end is EndReason.COMPLETED


async def test_the_call_over_the_step_budget_is_an_error_that_names_it_and_is_not_tried_again(
    refused, upstream, desk
) -> None:
    upstream.says(LOOKS)
    found = await refused(max_steps=4)
    assert "max_steps" in str(found.error)
    assert (found.tries, upstream.count, len(desk.looked)) == (1, 4, 4)
    assert found.transcript.end is EndReason.OVER_BUDGET
    assert "max_steps" in found.transcript.detail
    assert [call.result for call in found.transcript.tool_calls] == ["Dear reader"] * 4


async def test_a_forbidden_call_never_reaches_the_agent(refused, upstream, desk) -> None:
    upstream.says(Says("I tidy up.", calls=[("shred", {"path": "all"}), ("look", {"path": "a"})]), FINDS)
    found = await refused(forbidden=is_shred)
    assert not desk.shredded
    assert desk.looked == ["a"]
    assert "shred" in str(found.error)
    assert (found.tries, upstream.count) == (1, 1)
    calls = as_tuples(found.transcript.tool_calls)
    assert calls == [("shred", {"path": "all"}, True), ("look", {"path": "a"}, False)]
    assert found.transcript.end is EndReason.FORBIDDEN_CALL


async def test_a_reply_of_nothing_but_a_forbidden_call_arrives_as_one_without_calls(
    sdk: tuple[SdkAgent, bool], metered, upstream, desk
) -> None:
    upstream.says(Says("I tidy up.", calls=[("shred", {"path": "all"})]))
    async with metered(forbidden=is_shred) as trial:
        assert await sdk[0](trial.trial, desk.tools, "Go.") == "I tidy up."
        transcript = await trial.transcript()
    assert not desk.shredded
    assert as_tuples(transcript.tool_calls) == [("shred", {"path": "all"}, True)]
    assert transcript.end is EndReason.FORBIDDEN_CALL
