"""Good transcripts put together from what graders ask for."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.transcripts import derived_transcript
from tests.builders import a_task

STATE = {"type": "state_check", "expect": [{"file": "a.txt"}]}


def answer(*graders: dict[str, Any]) -> str | None:
    derived = derived_transcript(a_task(graders=list(graders)))
    return derived and derived.output


def made(*graders: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    derived = derived_transcript(a_task(graders=list(graders)))
    assert derived is not None
    return [(call.tool, call.arguments) for call in derived.tool_calls]


@pytest.mark.parametrize(
    ("grader", "said"),
    [
        ({"type": "contains", "value": "yes"}, "yes"),
        ({"type": "contains_any", "value": ["a", "b"]}, "a"),
        ({"type": "icontains_all", "value": ["a", "b"]}, "a b"),
        ({"type": "equals", "value": {"a": 1}}, '{"a": 1}'),
        ({"type": "regex", "value": "^total 4\\.2$"}, "total 4.2"),
        ({"type": "is_json"}, "{}"),
        ({"type": "output_check", "contains": ["a"], "matches": "b"}, "a b"),
        ({"type": "composite", "assertions": [{"type": "contains", "value": "yes"}]}, "yes"),
        ({"type": "contains", "value": "no", "negate": True}, None),
        ({"type": "regex", "value": "a+"}, None),
        ({"type": "is_json", "value": {}}, None),
        ({"type": "llm_rubric", "rubric": "?"}, None),
        ({"type": "trajectory_metrics", "max_steps": 3}, None),
        (STATE, None),
    ],
)
def test_what_is_said(grader: dict[str, Any], said: str | None) -> None:
    assert answer(grader) == said


def test_texts_stand_where_they_are_wanted() -> None:
    graders = [
        {"type": f"{where}", "value": text}
        for where, text in (("ends_with", "c"), ("contains", "b"), ("starts_with", "a"))
    ]
    assert answer(*graders, {"type": "latency", "threshold": 1}) == "a b c"


@pytest.mark.parametrize(
    ("grader", "calls"),
    [
        ({"type": "tool_calls", "required": ["a", {"tool": "b", "params": {"x": 1}, "min": 2}]}, ["a", "b", "b"]),
        ({"type": "tool_trajectory", "expected": [{"tool": "a"}], "minimums": {"a": 2, "b": 1}}, ["a", "a", "b"]),
        ({"type": "tool_used", "tools": ["a", "b"], "min": 2}, ["a", "a", "b", "b"]),
        ({"type": "tool_sequence", "steps": ["b", "a"]}, ["b", "a"]),
    ],
)
def test_what_is_called(grader: dict[str, Any], calls: list[str]) -> None:
    assert [tool for tool, _ in made(grader)] == calls


def test_arguments_are_given() -> None:
    assert made({"type": "tool_arguments", "tool": "a", "args": {"x": 1}, "defaults": {"y": 2}}) == [
        ("a", {"x": 1, "y": 2})
    ]


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "tool_calls", "required": ["a*"]},
        {"type": "tool_calls", "required": [{"tool": "a", "params": {"x": "<=3"}}]},
        {"type": "tool_used", "tools": ["a?"]},
        {"type": "tool_arguments", "tool": "a*", "args": {}},
    ],
)
def test_patterns_are_no_calls(grader: dict[str, Any]) -> None:
    assert derived_transcript(a_task(graders=[grader])) is None
