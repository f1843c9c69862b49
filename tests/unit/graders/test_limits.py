from typing import Any

import pytest

from passgate.tasks.graders.limits import LIMITS as METRICS_OF_OPTIONS
from passgate.tasks.model.graders import TrajectoryMetrics
from passgate.tasks.model.transcript import ToolCall
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.options import execution, metrics
from tests.unit.graders.trials import Graded, called

LIMITS = sorted(name for name in TrajectoryMetrics.model_fields if name.startswith(("max_", "min_")))


@pytest.mark.parametrize("limit", LIMITS)
async def test_every_limit_is_held_against_its_metric(limit: str, graded: Graded) -> None:
    what, metric = METRICS_OF_OPTIONS[limit]
    for value, passes in ((1, True), (0, limit.startswith("max_")), (2, limit.startswith("min_"))):
        result = await graded(metrics(**{limit: 1}), metrics=TrialMetrics(**{metric: value}))
        assert (result.passed, result.score, result.error) == (passes, float(passes), None)
    everything = {name: 1 for name in TrialMetrics.model_fields if name != metric}
    result = await graded(metrics(**{limit: 1}), metrics=TrialMetrics(**everything))
    assert result.error.startswith(f"not measured: {what}. ")


@pytest.mark.parametrize(
    ("limits", "measured", "score"),
    [
        ({"max_loop_rate": 1}, {"loop_rate": float("nan")}, None),
        ({"max_steps": 8, "max_total_tokens": 10}, {"steps": 9}, 0.0),
        ({"max_steps": 8, "max_total_tokens": 10}, {"steps": 1}, None),
        ({"max_tool_calls": 0}, {"tool_call_count": 1}, 0.0),
        ({"min_steps": 3, "max_steps": 3, "max_loop_rate": 0.4}, {"steps": 3, "loop_rate": 0.5}, 2 / 3),
        ({}, {}, None),
    ],
    ids=["no number", "certainly broken", "kept and unknown", "a limit of 0", "the share that is kept", "no limit"],
)
async def test_limits_together(limits: Any, measured: Any, score: float | None, graded: Graded) -> None:
    result = await graded(metrics(**limits), metrics=TrialMetrics(**measured))
    assert (result.passed, result.score, result.error is None) == (False, pytest.approx(score), score is not None)


METRICS = TrialMetrics(
    tokens_in=100, tokens_out=50, total_tokens=150, wall_time_seconds=1.1, tool_call_count=3, steps=1, cost=0.02
)
LIMITS_KEPT_AND_BROKEN = {
    "max_tool_calls": (3, 2),
    "max_llm_calls": (1, 0),
    "max_tokens": (150, 149),
    "max_input_tokens": (100, 99),
    "max_output_tokens": (50, 49),
    "max_cost_usd": (0.02, 0.0199),
    "max_duration_ms": (1100, 1099),
}
KEPT = {limit: least for limit, (least, _) in LIMITS_KEPT_AND_BROKEN.items()}


@pytest.mark.parametrize("limit", LIMITS_KEPT_AND_BROKEN)
async def test_one_broken_limit_of_seven_fails(limit: str, graded: Graded) -> None:
    kept, broken = execution(**{limit: KEPT[limit]}), LIMITS_KEPT_AND_BROKEN[limit][1]
    result = await graded(kept, metrics=METRICS)
    assert (result.score, result.passed, result.error) == (1.0, True, None)
    result = await graded(execution(**{**KEPT, limit: broken}), metrics=METRICS)
    assert (result.score, result.passed) == (0.0, False)
    assert [check.passed for check in result.checks].count(False) == 1
    assert (await graded(kept)).error.startswith("not measured: ")


async def test_a_broken_limit_is_certain_whatever_was_not_measured(graded: Graded) -> None:
    result = await graded(execution(max_tool_calls=2, max_cost_usd=1), metrics=TrialMetrics(tool_call_count=3))
    assert (result.score, result.error) == (0.0, None)
    assert result.checks[0].message == "tool calls: 3, expected at most 2"
    assert result.checks[1].message == "US dollars: not measured, expected at most 1"


@pytest.mark.parametrize("options", [execution(), execution(exploration_tolerance=0.5), {"type": "token_usage"}])
async def test_no_limit_is_an_error(options: dict[str, Any], graded: Graded) -> None:
    result = await graded(options, metrics=METRICS)
    assert result.error == f"{options['type']} has nothing to check: set at least one limit"


@pytest.mark.parametrize(
    ("tools", "target", "tolerance", "score"),
    [
        *((("search", "read", "edit"), 0.6, 0.2, 1.0), (("search", "read", "edit"), 0.6, 0.01, 0.0)),
        (("Grep", "WebFetch", "Glob", "Bash", "Bash"), 0.6, 0.0, 1.0),
        *((("READ", "Edit"), 0.6, 0.2, 0.0), ((), 0.6, 1.0, 0.0)),
        ((ToolCall(tool="Read"), ToolCall(tool="Bash", refused=True)), 1, 0, 1.0),
    ],
)
async def test_the_share_of_calls_that_only_look(
    tools: tuple[Any, ...], target: float, tolerance: float, score: float, graded: Graded
) -> None:
    wanted = execution(target_exploration_ratio=target, exploration_tolerance=tolerance)
    result = await graded(wanted, called(*tools), metrics=METRICS)
    assert (result.score, result.error) == (score, None)
    assert (await graded(wanted, called(*tools, complete=False), metrics=METRICS)).error


@pytest.mark.parametrize(
    ("wanted", "score"),
    [
        *(({"type": "latency", "threshold": 1100}, 1.0), ({"type": "latency", "threshold": 1099.9}, 0.0)),
        *(({"type": "cost", "budget": 0.02}, 1.0), ({"type": "cost", "budget": 0.019}, 0.0)),
        ({"type": "cost", "budget": 0}, 0.0),
        ({"type": "token_usage", "max_total": 150, "max_input": 100, "max_output": 50}, 1.0),
        ({"type": "token_usage", "max_total": 149, "max_input": 100, "max_output": 50}, 0.0),
        ({"type": "token_usage", "max_output": 49}, 0.0),
    ],
)
async def test_limits_of_their_own(wanted: dict[str, Any], score: float, graded: Graded) -> None:
    result = await graded(wanted, metrics=METRICS)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert (await graded(wanted)).error
