from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialMetrics

AgentvEvidence = Callable[..., Evidence]

METRICS = TrialMetrics(
    tokens_in=100,
    tokens_cached=20,
    tokens_out=50,
    total_tokens=150,
    wall_time_seconds=1.5,
    tool_call_count=3,
    steps=1,
    cost=0.02,
)


def options(**fields: Any) -> ExecutionMetrics:
    return ExecutionMetrics(type="execution_metrics", **fields)


@pytest.mark.parametrize(
    ("limits", "score"),
    [
        (
            {
                "max_tool_calls": 3,
                "max_llm_calls": 1,
                "max_tokens": 150,
                "max_cost_usd": 0.02,
                "max_duration_ms": 1500,
            },
            1.0,
        ),
        (
            {
                "max_tool_calls": 3,
                "max_llm_calls": 1,
                "max_tokens": 150,
                "max_cost_usd": 0.0001,
                "max_duration_ms": 1500,
            },
            0.8,
        ),
        ({"max_tool_calls": 2, "max_tokens": 1000, "max_cost_usd": 0.01, "max_duration_ms": 5000}, 0.5),
        ({"max_tool_calls": 3, "max_input_tokens": 1}, 1.0),
        ({"max_tool_calls": 0}, 0.0),
        ({"target_exploration_ratio": 0.6}, 1.0),
        ({"target_exploration_ratio": 0.6, "exploration_tolerance": 0.01}, 0.0),
        ({"max_tool_calls": 3, "target_exploration_ratio": 0}, 0.5),
    ],
)
async def test_the_share_of_limits_that_are_kept(
    limits: dict[str, Any], score: float, agentv_evidence: AgentvEvidence, called: Any
) -> None:
    evidence = agentv_evidence(transcript=called("search", "read", "edit", output="done"), metrics=METRICS)
    result = await grade(options(**limits), evidence)
    assert result.score == pytest.approx(score, abs=1e-9)
    assert result.error is None


async def test_what_was_not_measured_is_not_kept_and_calls_are_those_that_are_seen(
    agentv_evidence: AgentvEvidence, said: Any
) -> None:
    evidence = agentv_evidence(transcript=said("plain text only", complete=False))
    result = await grade(options(max_tool_calls=5, max_tokens=10, max_cost_usd=1), evidence)
    assert result.score == pytest.approx(1 / 3, abs=1e-9)
    assert [check.passed for check in result.checks] == [True, False, False]


@pytest.mark.parametrize(("most", "score"), [(0, 0.0), (1, 1.0)])
async def test_an_answer_without_messages_is_one_message(
    most: int, score: float, agentv_evidence: AgentvEvidence
) -> None:
    evidence = agentv_evidence(transcript=Transcript(output="done"))
    assert (await grade(options(max_llm_calls=most), evidence)).score == score


@pytest.mark.parametrize(
    "wanted",
    [options(), TokenUsage(type="token_usage")],
    ids=["nothing", "token_usage"],
)
async def test_no_limit_is_an_error(wanted: Any, agentv_evidence: AgentvEvidence) -> None:
    result = await grade(wanted, agentv_evidence(metrics=METRICS))
    assert (result.score, result.passed) == (None, False)
    assert result.error
    assert "nothing to check" in result.error


async def test_a_grader_that_agentv_drops_for_its_limits_is_passgates_own(agentv_evidence: AgentvEvidence) -> None:
    evidence = agentv_evidence(metrics=METRICS)
    assert (await grade(options(max_input_tokens=10), evidence)).score == 0.0
    assert (await grade(options(max_output_tokens=10_000), evidence)).score == 1.0


@pytest.mark.parametrize(
    ("wanted", "score"),
    [
        (Latency(type="latency", threshold=1500), 1.0),
        (Latency(type="latency", threshold=1499), 0.0),
        (Cost(type="cost", budget=0.02), 1.0),
        (Cost(type="cost", budget=0.019), 0.0),
        (TokenUsage(type="token_usage", max_total=170, max_input=100, max_output=50), 1.0),
        (TokenUsage(type="token_usage", max_total=150), 0.0),
        (TokenUsage(type="token_usage", max_total=170, max_input=99), 0.0),
    ],
)
async def test_limits_of_their_own(wanted: Any, score: float, agentv_evidence: AgentvEvidence) -> None:
    result = await grade(wanted, agentv_evidence(metrics=METRICS))
    assert (result.score, result.error) == (score, None)


@pytest.mark.parametrize(
    "wanted",
    [
        Latency(type="latency", threshold=1e9),
        Cost(type="cost", budget=1),
        TokenUsage(type="token_usage", max_total=10),
    ],
)
async def test_limits_of_their_own_on_what_was_not_measured(wanted: Any, agentv_evidence: AgentvEvidence) -> None:
    result = await grade(wanted, agentv_evidence(metrics=TrialMetrics()))
    assert (result.score, result.passed, result.error) == (0.0, False, None)
