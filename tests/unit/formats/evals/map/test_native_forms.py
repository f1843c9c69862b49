"""The graders of task files in eval files."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.graders import DeterministicTests, LlmRubric, StateCheck, ToolCalls, Turns
from tests.unit.formats.evals.grader_lists import read


def test_they_have_the_options_that_they_have_in_task_files(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "state_check", "name": "left", "weight": 2, "expect": [{"json_file": "a.json", "equals": None}]},
    ).one
    assert grader == StateCheck.model_validate(
        {"type": "state_check", "name": "left", "weight": 2, "expect": [{"json_file": "a.json", "equals": None}]}
    )
    assert "equals" in grader.expect[0].model_fields_set


def test_kebab_case_and_lists_called_required_are_theirs_too(tmp_path: Path) -> None:
    grader = read(tmp_path, {"type": "tool-calls", "required": ["search"], "in_order": True}).one
    assert grader == ToolCalls(type="tool_calls", required=("search",), in_order=True)


def test_their_paths_are_relative_to_the_eval_file(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "deterministic_tests", "tests": ["./tests/test_a.py"]},
        files={"evals/tests/test_a.py": ""},
    ).one
    assert grader == DeterministicTests(type="deterministic_tests", tests=("tests/test_a.py",))


def test_our_rubric_is_told_from_that_of_agentv_by_its_namespace(tmp_path: Path) -> None:
    ours, theirs = read(
        tmp_path,
        {"type": "passgate:llm_rubric", "rubric": "rubric.md", "threshold": 0.5},
        {"type": "llm-rubric", "value": "Is kind."},
        files={"evals/rubric.md": "# Kind?"},
    ).graders
    assert ours == LlmRubric(type="llm_rubric", rubric="rubric.md", threshold=0.5)
    assert theirs.type == "llm_grader"


def test_turns_hold_lists_of_graders_of_any_dialect(tmp_path: Path) -> None:
    grader = read(
        tmp_path,
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_judge"}]}], "conversation": ["Is kind."]},
    ).one
    assert isinstance(grader, Turns)
    assert [member.type for member in (*grader.turns[0].assertions, *grader.conversation)] == ["llm_grader", "rubrics"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "tool_calls"}, "[0]: this grader cannot fail: give at least one of required, forbidden"),
        (
            {"type": "output_check", "matches": "("},
            "[0].matches: not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            {"type": "deterministic_tests", "tests": ["nowhere.py"]},
            "[0].tests[0]: no file 'nowhere.py' in the suites folder",
        ),
        (
            {"type": "state_check", "expect": [{"file": "a"}], "negate": True},
            "[0].negate: state_check passes or fails; it has no `negate`",
        ),
        (
            {"type": "not-state_check", "expect": [{"file": "a"}]},
            "[0].type: state_check passes or fails; there is no `not` of it",
        ),
        ({"type": "state_check"}, "[0]: the key 'expect' is missing"),
    ],
)
def test_what_is_wrong_with_them_is_told_at_its_place(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    assert problem in read(tmp_path, said).problems
