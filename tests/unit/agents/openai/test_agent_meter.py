"""passgate's own tool loop through the meter."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.openai.conftest import FAIL, LOOK, spec_of
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Status
from tests.upstream_shapes import Says

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.metering.meter import open_meter
from passgate.tasks.model.agent import Endpoint, Upstreams
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript


@pytest.fixture
def through_the_meter(turn, upstream: ScriptedUpstream):
    async def _through(task: EvalTask, *, forbidden: Sequence[str] = (), **budgets: Any) -> Transcript:
        spec = spec_of().model_copy(update={"upstreams": Upstreams(openai=Endpoint(base_url=upstream.openai_base_url))})
        async with open_meter(spec, PriceTable(), CostCap(), environment={}) as meter:
            with meter.trial(Budgets(**budgets), lambda call: call.tool in forbidden) as access:
                return (await access.transcript(await turn(task, spec=spec, access=access))).checked()

    return _through


async def test_the_meter_and_the_loop_tell_one_story(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.script = [Says("I look.", calls=[("look", {"at": "a"}), ("fail", {})]), Says("done")]
    transcript = await through_the_meter(a_task(tools=[LOOK, FAIL]))
    assert [message.role for message in transcript.messages] == ["user", "assistant", "assistant"]
    assert [call.is_error for call in transcript.tool_calls] == [False, True]
    assert all(call.duration_ms for call in transcript.tool_calls)
    assert transcript.steps[0].usage.tokens_in == 100
    assert transcript.output == "done"


async def test_the_budget_ends_the_loop(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.says(Says("On and on.", calls=[("look", {"at": "a"})]))
    transcript = await through_the_meter(a_task(tools=[LOOK]), max_steps=3)
    assert transcript.end is EndReason.OVER_BUDGET
    assert upstream.count == 3
    assert len(transcript.steps) == 3


async def test_a_forbidden_tool_is_never_run(
    through_the_meter, upstream: ScriptedUpstream, left_behind: list[str]
) -> None:
    tools = [{"name": name, "description": "Leaves a file.", "command": f"touch {name}"} for name in ("add", "delete")]
    upstream.script = [Says("", calls=[("add", {}), ("delete", {})])]
    transcript = await through_the_meter(a_task(tools=tools), forbidden=["delete"])
    assert transcript.end is EndReason.FORBIDDEN_CALL
    assert [call.refused for call in transcript.tool_calls] == [False, True]
    assert upstream.count == 1
    assert left_behind == ["add"]


async def test_a_dead_provider_cannot_be_measured(through_the_meter, upstream: ScriptedUpstream) -> None:
    upstream.says(Status(401))
    with pytest.raises(MeasurementError, match="answered 401"):
        await through_the_meter(a_task())
