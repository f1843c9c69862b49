"""Real client libraries behind the meter: nothing changes for them until a limit is reached."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.transcript import EndReason, ToolCall
from tests.sdk_agents import MODEL, STREAMING, WHOLE, SdkAgent
from tests.upstream import Received, Says, ScriptedUpstream

PRICES = PriceTable(models={MODEL: Price(input=1.0, cached_input=0.1, output=10.0)})
LOOKS = Says("I look.", calls=[("look", {"path": "a b.txt"})], tokens_in=120, cached=100, tokens_out=7)
FINDS = Says("It is a letter.", tokens_in=150, tokens_out=5)

AGENTS = [
    *(pytest.param(agent, False, id=name) for name, agent in WHOLE.items()),
    *(pytest.param(agent, True, id=f"{name}, streaming") for name, agent in STREAMING.items()),
]
pytestmark = pytest.mark.parametrize(("agent", "streams"), AGENTS)


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


async def refusal_of(agent: SdkAgent, access: ModelAccess, desk: Desk) -> Exception:
    """The error that ends the agent."""
    with pytest.raises(Exception, match=r".") as caught:
        await agent(access, desk.tools, "Go.")
    return caught.value


def tries_of(error: Exception) -> int:
    """How often the client library sent the request that failed, as it says itself in its headers."""
    source: Any = error
    while not hasattr(source, "request"):
        source = source.__cause__
    return 1 + int(source.request.headers["x-stainless-retry-count"])


def keys_of(request: Received) -> set[str]:
    """What a request shows the provider as its key."""
    shown = {request.headers.get("authorization", "").removeprefix("Bearer "), request.headers.get("x-api-key", "")}
    return shown - {""}


def is_shred(call: ToolCall) -> bool:
    return call.tool == "shred"


def as_tuples(calls: tuple[ToolCall, ...]) -> list[tuple[str, dict[str, Any], bool]]:
    return [(call.tool, call.arguments, call.refused) for call in calls]


async def test_it_works_unchanged_and_the_transcript_is_complete(
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
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
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
    upstream.says(LOOKS)
    async with metered(prices=PRICES, max_steps=4) as trial:
        error = await refusal_of(agent, trial.trial, desk)
        transcript = await trial.transcript()
    assert "max_steps" in str(error)
    assert tries_of(error) == 1
    assert upstream.count == 4
    assert len(desk.looked) == 4
    assert transcript.end is EndReason.OVER_BUDGET
    assert "max_steps" in transcript.detail
    assert [call.result for call in transcript.tool_calls] == ["Dear reader"] * 4


async def test_a_forbidden_call_never_reaches_the_agent(
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
    upstream.says(Says("I tidy up.", calls=[("shred", {"path": "all"}), ("look", {"path": "a"})]), FINDS)
    async with metered(forbidden=is_shred) as trial:
        error = await refusal_of(agent, trial.trial, desk)
        transcript = await trial.transcript()
    assert not desk.shredded
    assert desk.looked == ["a"]
    assert "shred" in str(error)
    assert tries_of(error) == 1
    assert upstream.count == 1
    assert as_tuples(transcript.tool_calls) == [("shred", {"path": "all"}, True), ("look", {"path": "a"}, False)]
    assert transcript.end is EndReason.FORBIDDEN_CALL


async def test_a_reply_of_nothing_but_a_forbidden_call_arrives_as_one_without_calls(
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
    upstream.says(Says("I tidy up.", calls=[("shred", {"path": "all"})]))
    async with metered(forbidden=is_shred) as trial:
        assert await agent(trial.trial, desk.tools, "Go.") == "I tidy up."
        transcript = await trial.transcript()
    assert not desk.shredded
    assert as_tuples(transcript.tool_calls) == [("shred", {"path": "all"}, True)]
    assert transcript.end is EndReason.FORBIDDEN_CALL


async def test_a_tool_call_over_the_budget_is_never_run(
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
    upstream.says(Says(calls=[("look", {"path": "1"}), ("look", {"path": "2"}), ("shred", {"path": "3"})]))
    async with metered(prices=PRICES, max_tool_calls=2) as trial:
        error = await refusal_of(agent, trial.trial, desk)
        transcript = await trial.transcript()
    assert "max_tool_calls" in str(error)
    assert sorted(desk.looked) == ["1", "2"]
    assert not desk.shredded
    assert upstream.count == 1
    assert transcript.end is EndReason.OVER_BUDGET


async def test_money_for_one_call_buys_one_call(
    agent: SdkAgent, streams: bool, metered, upstream: ScriptedUpstream, desk: Desk
) -> None:
    upstream.says(Says("I look.", calls=[("look", {"path": "a"})], tokens_in=100, tokens_out=90))
    async with metered(prices=PRICES, max_cost_usd=0.001) as trial:
        error = await refusal_of(agent, trial.trial, desk)
        transcript = await trial.transcript()
    assert "max_cost_usd" in str(error)
    assert tries_of(error) == 1
    assert upstream.count == 1
    assert transcript.end is EndReason.OVER_BUDGET
