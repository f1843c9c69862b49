"""Graders that cannot fail, by their options."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.can_fail import (
    cannot_fail,
    gives_points_for_nothing,
    graders_that_cannot_fail,
)
from passgate.tasks.model.task import EvalTask
from tests.builders import SAYS_YES, a_task

FILE = {"file": "a.txt"}
WEIGHTED = {"rule": "weighted_average"}


def of(*graders: dict[str, Any], **changes: Any) -> EvalTask:
    return a_task(graders=list(graders), **changes)


def why(grader: dict[str, Any]) -> str | None:
    task = of(grader)
    return cannot_fail(task.graders[0], task)


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"type": "state_check", "expect": [{"command": line, **more}]}


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        ({"type": "deterministic_tests", "tests": ["t"], "command": "pytest {tests} || true"}, "exits 0 whatever"),
        ({"type": "static_analysis", "tools": ["true", "mypy . | tail -1"]}, "exits 0 whatever"),
        (command("true"), "exit 0 whatever"),
        (command("make; echo ok", stdout_contains=[" "], stdout_matches=".*"), "exit 0 whatever"),
        ({"type": "trajectory_metrics", "max_loop_rate": 1}, "max_loop_rate: 1"),
        ({"type": "trajectory_metrics", "max_retry_rate": 1.0, "max_tool_error_rate": 1}, "max_tool_error_rate: 1"),
        ({"type": "trajectory_metrics", "min_steps": 0, "min_tool_calls": 0}, "min_steps: 0"),
        ({"type": "policy_check", "arguments": [{"tool": "t", "param": "p", "allow": ["a", "*"]}]}, "every argument"),
        ({"type": "output_check", "matches": ".*"}, "matches '.*'"),
        ({"type": "output_check", "contains": [" "]}, "blank"),
        ({"type": "llm_rubric", "rubric": "Be good.", "threshold": 0}, "threshold is 0"),
        ({"type": "contains", "value": "\n"}, "blank"),
        ({"type": "contains_any", "value": ["yes", " "]}, "blank"),
        ({"type": "icontains_all", "value": [" ", "\t"]}, "blank"),
        ({"type": "contains", "value": "yes", "min_score": 0}, "least score is 0"),
        ({"type": "contains", "value": "yes", "min_score": 0, "negate": True}, "least score is 0"),
        ({"type": "regex", "value": "(yes)?"}, "matches /(yes)?/"),
        ({"type": "code_grader", "command": ["echo", '{"score": 1}']}, "says the same"),
        ({"type": "python", "value": "return True;"}, "says the same"),
        ({"type": "javascript", "value": "output.length > 3", "threshold": 0}, "least score is 0"),
        ({"type": "llm_grader", "min_score": 0}, "least score is 0"),
        ({"type": "rubrics", "criteria": [{"id": "a", "outcome": "It is so."}], "min_score": 0}, "least score is 0"),
        ({"type": "tool_trajectory", "minimums": {"search": 0}}, "minimums are 0"),
        ({"type": "tool_used", "tools": ["search"], "min": 0}, "`min` is 0"),
        ({"type": "step_count", "min": 0}, "0 steps or more"),
        (
            {"type": "execution_metrics", "target_exploration_ratio": 0.5, "exploration_tolerance": 0.5},
            "exceeds its limits",
        ),
        ({"type": "latency", "threshold": float("inf")}, "exceeds its limit"),
        ({"type": "cost", "budget": float("inf")}, "exceeds its limit"),
        ({"type": "composite", "assertions": [{"type": "regex", "value": ".*"}]}, "matches /.*/"),
        ({"type": "composite", "assertions": [SAYS_YES], "threshold": 0}, "whatever its members"),
        (
            {
                "type": "composite",
                "assertions": [SAYS_YES, {"type": "regex", "value": "|"}],
                "aggregator": {"type": "maximum"},
            },
            "matches /|/",
        ),
        (
            {
                "type": "composite",
                "assertions": [SAYS_YES, {"type": "regex", "value": "|"}],
                "aggregator": {"type": "threshold", "threshold": 0.5},
            },
            "matches /|/",
        ),
    ],
)
def test_what_cannot_fail(grader: dict[str, Any], reason: str) -> None:
    assert reason in (why(grader) or "")


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "deterministic_tests", "tests": ["t"]},
        {"type": "deterministic_tests", "tests": ["t"], "command": "python {tests}/check.py"},
        {"type": "static_analysis", "tools": ["true", "ruff"]},
        {"type": "state_check", "expect": [{**FILE, "exists": False}]},
        {"type": "state_check", "expect": [{"command": "true"}, FILE]},
        command("true", exit_code=1),
        command("echo $(cat a)", stdout_contains=["b"]),
        command("wc -l a | tr -d x", stdout_matches="^3"),
        {"type": "tool_calls", "forbidden": ["delete"]},
        {"type": "trajectory_metrics", "max_loop_rate": 0.99},
        {"type": "trajectory_metrics", "max_loop_rate": 1, "max_steps": 20},
        {"type": "trajectory_metrics", "min_tool_calls": 1},
        {"type": "policy_check", "arguments": [{"tool": "t", "param": "p", "allow": ["*"], "deny": ["b"]}]},
        {"type": "policy_check", "secrets": True},
        {"type": "output_check", "contains": [" ", "yes"]},
        {"type": "output_check", "matches": ".*", "not_contains": ["no"]},
        {"type": "output_check", "matches": ".+"},
        {"type": "output_check", "json_schema": {}},
        {"type": "llm_rubric", "rubric": "Be good.", "threshold": 0.01},
        {"type": "contains", "value": "yes", "min_score": 0.01},
        {"type": "contains_any", "value": ["yes", "no"]},
        {"type": "contains", "value": "yes", "negate": True},
        {"type": "regex", "value": ".*", "negate": True},
        {"type": "regex", "value": "^(?!.*no)"},
        {"type": "code_grader", "command": ["python", "grade.py"]},
        {"type": "python", "value": "output == 'true'"},
        {"type": "rubrics", "criteria": [{"id": "a", "outcome": "So.", "required": True}], "min_score": 0},
        {"type": "tool_trajectory", "mode": "subset"},
        {"type": "tool_used", "tools": ["search"], "min": 0, "max": 3},
        {"type": "step_count", "min": 1},
        {"type": "execution_metrics", "target_exploration_ratio": 0.5, "exploration_tolerance": 0.4},
        {"type": "latency", "threshold": 1e12},
        {"type": "composite", "assertions": [SAYS_YES, {"type": "regex", "value": ".*"}]},
        {
            "type": "composite",
            "assertions": [{"type": "contains", "value": "a", "required": True}, {"type": "regex", "value": "|"}],
            "aggregator": {"type": "maximum"},
        },
        {"type": "composite", "assertions": [SAYS_YES], "aggregator": {"type": "llm_grader", "prompt": "?"}},
        {"type": "turns", "turns": [{"assertions": [{"type": "regex", "value": ".*"}]}], "min_score": 0},
    ],
)
def test_what_can_fail(grader: dict[str, Any]) -> None:
    assert why(grader) is None


def test_of_graders_that_must_all_pass_each_is_told_by_its_place() -> None:
    task = of(SAYS_YES, {"type": "output_check", "matches": "|"}, {"type": "llm_rubric", "rubric": "?", "threshold": 0})
    assert [found.place for found in graders_that_cannot_fail(task)] == [1, 2]


POINTS = {"type": "regex", "value": ".*"}
ASKS = {"type": "contains", "value": "yes"}


@pytest.mark.parametrize(
    ("graders", "threshold", "places"),
    [
        ([ASKS, POINTS], 0.8, []),
        ([ASKS, {**POINTS, "weight": 0}], 0.8, []),
        ([{**ASKS, "min_score": 0}], 0.8, []),
        ([POINTS], 0.8, [None]),
        ([ASKS, POINTS], 0.5, [None]),
        ([ASKS, POINTS], 0.51, []),
        ([{**ASKS, "required": True}, POINTS], 0.5, []),
        ([{**ASKS, "weight": 0}, POINTS], 0.8, [None]),
        ([SAYS_YES, POINTS], 0.5, []),
        ([ASKS, {"type": "trajectory_metrics", "max_loop_rate": 1}], 0.8, [1]),
        ([ASKS, {"type": "llm_rubric", "rubric": "?", "threshold": 0}], 0.8, []),
    ],
)
def test_graders_of_an_average_may_inform_as_long_as_the_task_can_fail(
    graders: list[dict[str, Any]], threshold: float, places: list[int | None]
) -> None:
    task = of(*graders, scoring={**WEIGHTED, "threshold": threshold})
    assert [found.place for found in graders_that_cannot_fail(task)] == places


def test_a_task_that_cannot_fail_says_what_every_trial_has() -> None:
    (found,) = graders_that_cannot_fail(of(ASKS, {**POINTS, "weight": 3}, scoring={**WEIGHTED, "threshold": 0.6}))
    assert found.why.startswith("no trial has less than 0.75, and 0.6 passes")
    assert "regex: every answer matches /.*/" in found.why


@pytest.mark.parametrize(
    ("grader", "told"),
    [(POINTS, True), ({**POINTS, "weight": 0}, False), ({**POINTS, "min_score": 0}, True), (ASKS, False)],
)
def test_points_for_nothing(grader: dict[str, Any], told: bool) -> None:
    assert bool(gives_points_for_nothing(of(ASKS, grader, scoring=WEIGHTED))) is told
    assert gives_points_for_nothing(of(ASKS, grader)) == []


def test_composites_as_agentv_computes_them_are_not_judged() -> None:
    composite = {"type": "composite", "assertions": [POINTS]}
    assert graders_that_cannot_fail(of(composite, scoring={**WEIGHTED, "compat": "agentv"})) == []
    assert graders_that_cannot_fail(of(composite, scoring=WEIGHTED)) != []
