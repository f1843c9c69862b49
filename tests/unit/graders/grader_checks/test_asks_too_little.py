"""Graders that an agent satisfies without the work."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.can_fail import graders_that_ask_too_little
from tests.builders import a_task

SCHEMA = {"type": "output_check", "json_schema": {}}
EXISTS = {"type": "state_check", "expect": [{"file": "report.md"}]}
WORD = {"type": "output_check", "contains": ["order"]}
STRONG = {"type": "output_check", "contains": ["shipped"]}


def whys(*graders: dict[str, Any], prompt: str = "Which state has order 17?", **changes: Any) -> list[tuple[Any, str]]:
    task = a_task(graders=list(graders), inputs={"prompt": prompt}, **changes)
    return [(found.place, found.why) for found in graders_that_ask_too_little(task)]


@pytest.mark.parametrize(
    ("grader", "why"),
    [
        (EXISTS, "an agent passes that leaves an empty report.md"),
        (
            {**EXISTS, "expect": [{"file": "a"}, {"file": "b", "not_contains": ["x"]}]},
            "an agent passes that leaves an empty a, b",
        ),
        (WORD, "an agent passes that repeats the prompt"),
        ({**WORD, "contains": ["ORDER 17"], "ignore_case": True}, "an agent passes that repeats the prompt"),
        ({"type": "contains", "value": "order"}, "an agent passes that repeats the prompt"),
        ({"type": "icontains_any", "value": ["Order", "refund"]}, "an agent passes that repeats the prompt"),
        ({"type": "contains_all", "value": ["order", "state"]}, "an agent passes that repeats the prompt"),
        ({"type": "starts_with", "value": "Which state"}, "an agent passes that repeats the prompt"),
        ({"type": "is_json"}, "an agent passes that answers `{}`"),
        ({"type": "output_check", "json_schema": {"type": "object"}}, "an agent passes that answers `{}`"),
        ({"type": "output_check", "json_schema": {"type": "array"}}, "an agent passes that answers `[]`"),
        ({"type": "is_json", "value": {"type": "integer"}}, "an agent passes that answers `0`"),
    ],
)
def test_a_task_that_asks_for_nothing_else(grader: dict[str, Any], why: str) -> None:
    assert whys(grader) == [(0, why)]


@pytest.mark.parametrize("schema", [{}, {"title": "Order", "description": "An order."}, {"minimum": -1}])
def test_a_schema_that_accepts_every_document_is_told_whatever_else_is_asked(schema: dict[str, Any]) -> None:
    every = "every JSON document is as its json_schema wants it"
    assert whys(STRONG, {**SCHEMA, "json_schema": schema}) == [(1, every)]
    assert whys({**SCHEMA, "json_schema": schema})[0] == (0, every)


def test_graders_that_are_weak_together() -> None:
    assert whys(WORD, EXISTS) == [(None, "an agent passes that repeats the prompt and leaves an empty report.md")]
    assert whys(SCHEMA, WORD, prompt="Write JSON of the order.")[1:] == []


@pytest.mark.parametrize(
    "grader",
    [
        STRONG,
        {"type": "contains", "value": "order", "negate": True},
        {"type": "contains_all", "value": ["order", "shipped"]},
        {"type": "equals", "value": "order"},
        {"type": "output_check", "matches": "order"},
        {"type": "output_check", "json_schema": {"type": "object", "required": ["state"]}},
        {"type": "state_check", "expect": [{"file": "report.md", "contains": ["shipped"]}]},
        {"type": "state_check", "expect": [{"file": "report.md", "exists": False}]},
        {"type": "state_check", "expect": [{"json_file": "a.json", "equals": 1}]},
        {"type": "state_check", "run": ["make"], "expect": [{"file": "report.md"}]},
        {"type": "tool_calls", "required": ["get_order"]},
    ],
)
def test_one_grader_that_asks_for_the_work_is_enough(grader: dict[str, Any]) -> None:
    assert whys(grader) == []
    assert whys(WORD, EXISTS, grader) == []


def test_graders_without_a_weight_ask_for_nothing() -> None:
    average = {"rule": "weighted_average", "threshold": 0.5}
    inform = {"type": "equals", "value": "shipped", "weight": 0}
    assert whys({"type": "contains", "value": "order"}, inform, scoring=average) == [
        (None, "an agent passes that repeats the prompt")
    ]
