from typing import Any

import pytest

from passgate.tasks.model.assertions import Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.trials import Graded, called

METRICS = TrialMetrics(
    tokens_in=100, tokens_out=50, total_tokens=150, wall_time_seconds=1.1, tool_call_count=3, steps=1, cost=0.02
)


def options(**fields: Any) -> ExecutionMetrics:
    return ExecutionMetrics(type="execution_metrics", **fields)


KEPT = [
    {"max_tool_calls": 3},
    {"max_llm_calls": 1},
    {"max_tokens": 150},
    {"max_input_tokens": 100},
    {"max_output_tokens": 50},
    {"max_cost_usd": 0.02},
    {"max_duration_ms": 1100},
]
BROKEN = [
    {"max_tool_calls": 2},
    {"max_llm_calls": 0},
    {"max_tokens": 149},
    {"max_input_tokens": 99},
    {"max_output_tokens": 49},
    {"max_cost_usd": 0.0199},
    {"max_duration_ms": 1099},
]


@pytest.mark.parametrize("limits", KEPT, ids=lambda limits: next(iter(limits)))
async def test_a_limit_that_is_just_kept(limits: dict[str, Any], graded: Graded) -> None:
    result = await graded(options(**limits), metrics=METRICS)
    assert (result.score, result.passed, result.error) == (1.0, True, None)


@pytest.mark.parametrize("limits", BROKEN, ids=lambda limits: next(iter(limits)))
async def test_one_broken_limit_of_seven_fails(limits: dict[str, Any], graded: Graded) -> None:
    others = {name: value for kept in KEPT for name, value in kept.items()}
    result = await graded(options(**{**others, **limits}), metrics=METRICS)
    assert (result.score, result.passed) == (0.0, False)
    assert [check.passed for check in result.checks].count(False) == 1


@pytest.mark.parametrize("limits", KEPT, ids=lambda limits: next(iter(limits)))
async def test_what_was_not_measured_is_an_error(limits: dict[str, Any], graded: Graded) -> None:
    result = await graded(options(**limits), metrics=TrialMetrics())
    assert result.error.startswith("not measured: ")


async def test_a_broken_limit_is_certain_whatever_was_not_measured(graded: Graded) -> None:
    metrics = TrialMetrics(tool_call_count=3)
    result = await graded(options(max_tool_calls=2, max_cost_usd=1), metrics=metrics)
    assert (result.score, result.error) == (0.0, None)
    assert result.checks[0].message == "tool calls: 3, expected at most 2"
    assert result.checks[1].message.startswith("not measured: ")


@pytest.mark.parametrize("fields", [{}, {"exploration_tolerance": 0.5}])
async def test_no_limit_is_an_error(fields: dict[str, Any], graded: Graded) -> None:
    result = await graded(options(**fields), metrics=METRICS)
    assert result.error == "execution_metrics has nothing to check: set at least one limit"


@pytest.mark.parametrize(
    ("tools", "tolerance", "score"),
    [
        (("search", "read", "edit"), 0.2, 1.0),
        (("search", "read", "edit"), 0.01, 0.0),
        (("Grep", "WebFetch", "Glob", "Bash", "Bash"), 0.0, 1.0),
        (("READ", "Edit"), 0.2, 0.0),
        ((), 1.0, 0.0),
    ],
)
async def test_the_share_of_calls_that_only_look(
    tools: tuple[str, ...], tolerance: float, score: float, graded: Graded
) -> None:
    wanted = options(target_exploration_ratio=0.6, exploration_tolerance=tolerance)
    result = await graded(wanted, called(*tools), metrics=METRICS)
    assert (result.score, result.error) == (score, None)


async def test_a_refused_call_was_not_made(graded: Graded) -> None:
    calls = (ToolCall(tool="Read"), ToolCall(tool="Bash", refused=True))
    transcript = Transcript(messages=(Message(role="assistant", tool_calls=calls),))
    wanted = options(target_exploration_ratio=1, exploration_tolerance=0)
    assert (await graded(wanted, transcript)).score == 1.0


async def test_the_share_of_calls_that_are_not_known_is_an_error(graded: Graded) -> None:
    result = await graded(options(target_exploration_ratio=1), called("read", complete=False))
    assert result.error


@pytest.mark.parametrize(
    ("wanted", "score"),
    [
        (Latency(type="latency", threshold=1100), 1.0),
        (Latency(type="latency", threshold=1099.9), 0.0),
        (Cost(type="cost", budget=0.02), 1.0),
        (Cost(type="cost", budget=0.019), 0.0),
        (Cost(type="cost", budget=0), 0.0),
        (TokenUsage(type="token_usage", max_total=150, max_input=100, max_output=50), 1.0),
        (TokenUsage(type="token_usage", max_total=149, max_input=100, max_output=50), 0.0),
        (TokenUsage(type="token_usage", max_output=49), 0.0),
    ],
)
async def test_limits_of_their_own(wanted: Latency | Cost | TokenUsage, score: float, graded: Graded) -> None:
    result = await graded(wanted, metrics=METRICS)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


@pytest.mark.parametrize(
    "wanted",
    [
        Latency(type="latency", threshold=1e9),
        Cost(type="cost", budget=1e9),
        TokenUsage(type="token_usage", max_input=10),
        TokenUsage(type="token_usage"),
    ],
)
async def test_limits_of_their_own_on_what_was_not_measured(
    wanted: Latency | Cost | TokenUsage, graded: Graded
) -> None:
    result = await graded(wanted, metrics=TrialMetrics())
    assert result.error
