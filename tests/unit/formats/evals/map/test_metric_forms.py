"""Graders of what a trial used."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import Cost, ExecutionMetrics, Latency, SkillTrigger, TokenUsage
from tests.unit.formats.evals.grader_lists import read


@pytest.mark.parametrize(
    "said",
    [
        {"max_tool_calls": 3, "max_cost_usd": 0.5, "max_input_tokens": 9},
        {"maxToolCalls": 3, "maxCostUsd": 0.5, "maxInputTokens": 9},
        {"max-tool-calls": 3.0, "max-cost-usd": 0.5, "max-input-tokens": 9},
    ],
)
def test_limits_are_read_in_every_case(tmp_path: Path, said: dict[str, Any]) -> None:
    assert read(tmp_path, {"type": "execution-metrics", **said}).one == ExecutionMetrics(
        type="execution_metrics", max_tool_calls=3, max_cost_usd=0.5, max_input_tokens=9
    )


def test_the_other_names_of_limits(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "latency", "max_ms": 5}).one == Latency(type="latency", threshold=5)
    assert read(tmp_path, {"type": "cost", "threshold": 5}).one == Cost(type="cost", budget=5)
    assert read(tmp_path, {"type": "token_usage", "maxOutput": 5}).one == TokenUsage(type="token_usage", max_output=5)


@pytest.mark.parametrize(
    ("said", "any_call"),
    [
        ({"type": "skill-trigger", "skill": "a"}, False),
        ({"type": "skill_trigger", "skill": "a", "any_call": True}, True),
        ({"type": "skill-used", "value": "a"}, True),
        ({"type": "skill-used", "skill": "a", "any_call": False}, False),
    ],
)
def test_a_skill_may_be_used_in_the_first_call_or_in_any(tmp_path: Path, said: dict[str, Any], any_call: bool) -> None:
    grader = SkillTrigger(type="skill_trigger", skill="a", any_call=any_call)
    assert read(tmp_path, said).one == grader
    not_used = read(tmp_path, {**said, "should_trigger": False}).one
    assert not_used == grader.model_copy(update={"should_trigger": False})


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "execution_metrics"}, ": execution_metrics cannot fail: give at least one of max_tool_calls, "),
        ({"type": "execution_metrics", "exploration_tolerance": 0.1}, ": execution_metrics cannot fail: give "),
        ({"type": "token-usage"}, ": token_usage cannot fail: give at least one of max_total, max_input, max_output"),
        ({"type": "execution_metrics", "max_tokens": -1}, ".max_tokens: must be at least 0, not -1"),
        ({"type": "execution_metrics", "max_tokens": 1.5}, ".max_tokens: expected a whole number, not 1.5"),
        ({"type": "execution_metrics", "max_token": 1}, ".max_token: unknown key; did you mean 'max_tokens'?"),
        ({"type": "latency"}, ": the key 'threshold' is missing"),
        ({"type": "cost", "budget": "1"}, '.budget: expected a number, not "1"'),
        ({"type": "skill-used", "value": ["a"]}, '.value: expected a text, not ["a"]'),
        ({"type": "skill-trigger"}, ": the key 'skill' is missing"),
    ],
)
def test_wrong_limits_are_refused(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    (found,) = read(tmp_path, said).problems
    assert found.startswith(f"[0]{problem}")
