"""What a schema cannot say of the graders that eval files have too."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.rules import findings
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, task_document

YES = {"type": "contains", "value": "yes", "name": "says-yes"}


@pytest.fixture
def found(tmp_path: Path):
    """The findings of a grader, as paths and messages."""
    (tmp_path / "judge.md").write_text("Is it kind?")

    def _found(**grader: Any) -> list[tuple[tuple[str | int, ...], str]]:
        task = TaskFile.model_validate(task_document(graders=[grader]))
        return [(path[2:], message) for path, message in findings(task, tmp_path / "t", tmp_path, SHIPPED)]

    return _found


@pytest.mark.parametrize(
    "grader",
    [
        YES,
        {"type": "regex", "value": "(?<a>x)", "flags": "i"},
        {"type": "is_json", "value": {"type": "object"}},
        {"type": "code_grader", "command": ["python", "x.py"]},
        {"type": "llm_grader", "prompt_file": "judge.md"},
        {"type": "llm_grader", "prompt_file": "judge.md", "prompt": "Is it kind?"},
        {"type": "tool_trajectory", "minimums": {"a": 1}},
        {"type": "tool_trajectory", "mode": "subset"},
        {"type": "step_count", "max": 0},
        {"type": "token_usage", "max_total": 0},
        {"type": "execution_metrics", "max_input_tokens": 0},
        {"type": "composite", "assertions": [YES], "aggregator": {"type": "safety_gate", "required": ["says-yes"]}},
        {"type": "composite", "assertions": [YES | {"required": True}], "aggregator": {"type": "safety_gate"}},
        {"type": "turns", "turns": [{}], "conversation": [YES]},
    ],
)
def test_a_grader_that_can_fail_is_fine(found, grader: dict[str, Any]) -> None:
    assert found(**grader) == []


@pytest.mark.parametrize(
    ("grader", "path", "message"),
    [
        ({"type": "regex", "value": "("}, ("value",), "no regular expression as JavaScript knows them"),
        ({"type": "is_json", "value": {"type": 3}}, ("value", "type"), "not a JSON Schema"),
        ({"type": "code_grader", "command": ["x"], "cwd": "gone"}, ("cwd",), "no file 'gone'"),
        ({"type": "javascript", "value": "true", "cwd": "../.."}, ("cwd",), "leaves the suites folder"),
        ({"type": "llm_grader", "prompt_file": "gone.md"}, ("prompt_file",), "no file 'gone.md'"),
        ({"type": "llm_grader", "prompt_file": "judge.md", "prompt": "x"}, ("prompt_file",), "says something else"),
        ({"type": "tool_trajectory"}, (), "cannot fail: give at least one of expected, minimums"),
        ({"type": "step_count"}, (), "cannot fail"),
        ({"type": "token_usage"}, (), "cannot fail"),
        ({"type": "execution_metrics", "exploration_tolerance": 0.1}, (), "cannot fail"),
        ({"type": "turns", "turns": [{}]}, (), "no turn has `assertions`"),
    ],
)
def test_one_that_cannot_fail_or_run_is_found(
    found, grader: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    ((where, what),) = found(**grader)
    assert where == path
    assert message in what


@pytest.mark.parametrize(
    ("aggregator", "message"),
    [
        ({"type": "threshold"}, "the key 'threshold' is missing"),
        ({"type": "code_grader"}, "the key 'command' is missing"),
        ({"type": "llm_grader"}, "the key 'prompt' is missing"),
        ({"type": "safety_gate"}, "this gate guards nothing"),
        ({"type": "safety_gate", "required": ["says-yse"]}, "the name of no member; did you mean 'says-yes'?"),
        ({"type": "weighted_average", "weights": {"twin": 2}}, "the name of 2 members"),
    ],
)
def test_an_aggregator_that_cannot_work_is_found(found, aggregator: dict[str, Any], message: str) -> None:
    twins = [YES | {"name": "twin"}, YES | {"name": "twin"}]
    ((where, what),) = found(type="composite", assertions=[YES, *twins], aggregator=aggregator)
    assert where == ("aggregator",)
    assert message in what


def test_graders_inside_of_graders_are_checked_too(found) -> None:
    wrong = {"type": "regex", "value": "("}
    inner = {"type": "composite", "assertions": [YES, wrong]}
    outer = {"type": "turns", "turns": [{"assertions": [YES, inner]}], "conversation": [wrong]}
    assert [where for where, _ in found(**outer)] == [
        ("turns", 0, "assertions", 1, "assertions", 1, "value"),
        ("conversation", 0, "value"),
    ]
