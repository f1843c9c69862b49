"""passgate's own tool loop through the meter: in process, as it runs, and over HTTP, as other agents run."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import a_task
from tests.meters import OverHttp, asking, open_served_meter
from tests.unit.agents.openai.conftest import FAIL, LOOK
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Down, MalformedJson, Status
from tests.upstream_shapes import Says

from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.meter import open_meter
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.providers.retries import RetryPolicy

A_CENT_A_CALL = PriceTable(models={"model-1": Price(input=100, output=0)})
"""Every reply of the provider has 100 tokens in."""
ONE_ATTEMPT = RetryPolicy(attempts=1)
LOOKS = Says("On and on.", calls=[("look", {"at": "a"})])


@pytest.fixture(params=["in process", "over HTTP"])
def through_the_meter(request: pytest.FixtureRequest, turn, upstream: ScriptedUpstream):
    async def _through(
        task: EvalTask,
        *,
        forbidden: Sequence[str] = (),
        cost_cap: float | None = None,
        prices=A_CENT_A_CALL,
        **budgets: Any,
    ) -> Transcript:
        spec = asking(upstream.openai_base_url)
        opened = open_served_meter if request.param == "over HTTP" else open_meter
        async with opened(spec, prices, CostCap(cost_cap), environment={}, retry_policy=ONE_ATTEMPT) as meter:
            with meter.trial(Budgets(**budgets), lambda call: call.tool in forbidden) as access:
                url = access.base_urls["openai"]
                asked = OverHttp(url, access.api_key, access) if url else access
                transcript = await turn(task, spec=spec, access=asked)
                return (await access.transcript(transcript)).result()

    return _through


async def test_the_meter_and_the_loop_tell_one_story(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.script = [Says("I look.", calls=[("look", {"at": "a"}), ("fail", {})]), Says("done")]
    transcript = await through_the_meter(a_task(tools=[LOOK, FAIL]))
    assert [message.role for message in transcript.messages] == ["user", "assistant", "assistant"]
    assert [call.is_error for call in transcript.tool_calls] == [False, True]
    assert all(call.duration_ms for call in transcript.tool_calls)
    step = transcript.steps[0]
    assert (step.usage.tokens_in, step.usage.cost_usd) == (100, pytest.approx(0.01))
    assert step.latency_ms
    assert transcript.output == "done"


@pytest.mark.parametrize(
    ("budget", "steps"),
    [({"max_steps": 3}, 3), ({"max_tool_calls": 2}, 3), ({"max_tokens": 300}, 2), ({"max_cost_usd": 0.035}, 3)],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_every_budget_ends_the_loop(through_the_meter, upstream, budget: dict[str, float], steps: int) -> None:
    upstream.says(LOOKS)
    transcript = await through_the_meter(a_task(tools=[LOOK]), **budget)
    assert transcript.end is EndReason.OVER_BUDGET
    assert next(iter(budget)) in transcript.detail
    assert upstream.count == len(transcript.steps) == steps


async def test_a_forbidden_tool_is_never_run(through_the_meter, upstream, left_behind: list[str]) -> None:
    tools = [{"name": name, "description": "Leaves a file.", "command": f"touch {name}"} for name in ("add", "delete")]
    upstream.script = [Says("", calls=[("add", {}), ("delete", {})])]
    transcript = await through_the_meter(a_task(tools=tools), forbidden=["delete"])
    assert transcript.end is EndReason.FORBIDDEN_CALL
    assert [call.refused for call in transcript.tool_calls] == [False, True]
    assert upstream.count == 1
    assert left_behind == ["add"]


@pytest.mark.parametrize(
    ("reply", "limits", "error", "what"),
    [
        *(
            (reply, {}, MeasurementError, "answered|is unavailable|not set")
            for reply in (Down(), Status(401), MalformedJson())
        ),
        (LOOKS, {"cost_cap": 0.025}, CostCapError, "cap"),
        (
            LOOKS,
            {"prices": PriceTable(), "max_cost_usd": 1},
            MeasurementError,
            "price of the model 'model-1' is unknown",
        ),
    ],
    ids=["down", "key", "no JSON", "cost cap", "unknown price"],
)
async def test_what_is_no_fault_of_the_agent(through_the_meter, upstream, reply: Any, limits, error, what: str) -> None:
    upstream.says(reply)
    with pytest.raises(error, match=what):
        await through_the_meter(a_task(tools=[LOOK]), **limits)


async def test_a_broken_tool_cannot_be_measured(through_the_meter, upstream) -> None:
    gone = {"name": "gone", "description": "Gone.", "function": "gone.py:run"}
    upstream.says(Says("", calls=[("gone", {}), ("look", {"at": "a"})]))
    with pytest.raises(MeasurementError, match="the file of the tool gone"):
        await through_the_meter(a_task(tools=[gone, LOOK]))
    assert upstream.count == 1
