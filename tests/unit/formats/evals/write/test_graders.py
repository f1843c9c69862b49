"""Graders in the words of eval files."""

from typing import Any

import pytest

from passgate.tasks.formats.evals.write.graders import written_criteria, written_grader


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            {"type": "contains", "value": "x", "weight": 2, "name": "says-x"},
            {"type": "contains", "name": "says-x", "value": "x", "weight": 2},
        ),
        (
            {"type": "code_grader", "command": ["python", "judge.py"], "cwd": "./graders"},
            {"type": "code_judge", "script": ["python", "judge.py"], "cwd": "./graders"},
        ),
        ({"type": "code_grader", "command": ["sh", "-c", "a | b"]}, {"type": "code_judge", "script": "a | b"}),
        ({"type": "llm_grader", "prompt_file": "./p.md"}, {"type": "llm_judge", "prompt": "./p.md"}),
        (
            {"type": "rubrics", "criteria": [{"id": "rubric-1", "outcome": "is kind"}], "required": True},
            {"type": "rubric", "rubrics": ["is kind"], "required": True},
        ),
        (
            {
                "type": "composite",
                "assertions": [{"type": "llm_grader", "name": "a"}],
                "aggregator": {"type": "code_grader", "command": ["agg"]},
            },
            {
                "type": "composite",
                "assertions": [{"type": "llm_judge", "name": "a"}],
                "aggregator": {"type": "code_judge", "command": ["agg"]},
            },
        ),
        ({"type": "tool_trajectory", "mode": "subset"}, {"type": "tool_trajectory", "expected": [], "mode": "subset"}),
        (
            {"type": "tool_used", "tools": ["a"], "min": 2, "negate": True},
            {"type": "trajectory:tool-used", "value": {"name": ["a"], "min": 2}, "negate": True},
        ),
        (
            {"type": "step_count", "kind": "tool", "max": 3},
            {"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}},
        ),
        (
            {"type": "unavailable", "kind": "not-similar", "options": {"value": "x"}, "negate": True},
            {"type": "not-similar", "value": "x"},
        ),
        (
            {"type": "unavailable", "kind": "include", "options": {"include": "a"}},
            {"include": "a"},
        ),
        (
            {"type": "llm_rubric", "rubric": "Is it kind?"},
            {"type": "passgate:llm_rubric", "rubric": "Is it kind?"},
        ),
    ],
)
def test_a_grader_has_the_names_of_agentevals(said: dict[str, Any], written: dict[str, Any]) -> None:
    assert written_grader(said) == written
    assert list(written_grader(said)) == list(written)


def test_an_item_of_a_rubric_that_is_more_than_a_text_is_a_mapping() -> None:
    spans = [{"low": 0, "high": 4, "outcome": "bad"}, {"low": 5, "high": 10, "outcome": "good"}]
    items = [
        {"id": "own", "outcome": "is kind"},
        {"id": "rubric-2", "outcome": "is short", "weight": 2},
        {"id": "rubric-3", "score_ranges": spans},
    ]
    assert written_criteria(items) == [
        {"id": "own", "outcome": "is kind"},
        {"id": "rubric-2", "outcome": "is short", "weight": 2},
        {
            "id": "rubric-3",
            "score_ranges": [
                {"score_range": [0, 4], "outcome": "bad"},
                {"score_range": [5, 10], "outcome": "good"},
            ],
        },
    ]
