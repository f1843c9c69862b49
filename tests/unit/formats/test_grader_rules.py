"""What a schema cannot say of graders; the examples of invalid tasks say more."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.formats.findings import findings_of

YES = {"type": "contains", "value": "yes", "name": "says-yes"}


@pytest.fixture
def found(tmp_path: Path):
    (tmp_path / "judge.md").write_text("Is it kind?")

    def _found(**grader: Any) -> list[str]:
        return [problem.removeprefix("graders[0]") for problem in findings_of(tmp_path, graders=[grader])]

    return _found


def state(**check: Any) -> dict[str, Any]:
    return {"type": "state_check", "expect": [check]}


def gate(**aggregator: Any) -> dict[str, Any]:
    twin = YES | {"name": "twin"}
    return {"type": "composite", "assertions": [YES, twin, twin], "aggregator": aggregator}


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "output_check", "equals": ""},
        {"type": "output_check", "not_contains": ["a"]},
        {"type": "output_check", "json_schema": {}},
        {"type": "tool_calls", "forbidden": ["a"]},
        {"type": "tool_calls", "required": ["a"]},
        {"type": "trajectory_metrics", "max_steps": 0},
        {"type": "policy_check", "canaries": ["a"]},
        {"type": "policy_check", "arguments": [{"tool": "a", "param": "b", "deny": ["c"]}]},
        state(file="a/b/..c"),
        state(json_file="a", equals=None),
        state(json_file="a", absent=False),
        state(sqlite="a", query="b", value=None),
        state(sqlite="a", query="b", rows=[]),
        state(command="true"),
        {"type": "llm_rubric", "rubric": "Is it kind?"},
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
    ("grader", "problem"),
    [
        ({"type": "output_check", "matches": "a{99999999999999}"}, ".matches: not a regular expression: "),
        ({"type": "output_check", "matches": "(" * 5000}, ".matches: not a regular expression: "),
        (state(json_file="../x", equals=1), ".expect[0].json_file: '../x' is outside the workspace"),
        (state(sqlite="a/..", query="a", value=1), ".expect[0].sqlite: 'a/..' is outside the workspace"),
        (state(file="/etc/passwd"), ".expect[0].file: '/etc/passwd' is outside the workspace"),
        ({"type": "regex", "value": "("}, ".value: no regular expression as JavaScript knows them"),
        ({"type": "is_json", "value": {"type": 3}}, ".value.type: not a JSON Schema"),
        ({"type": "output_check", "json_schema": {"$schema": "draft-7"}}, ".json_schema.$schema: not a JSON Schema"),
        ({"type": "output_check", "json_schema": {"$schema": 7}}, ".json_schema.$schema: not a JSON Schema"),
        ({"type": "code_grader", "command": ["x"], "cwd": "gone"}, ".cwd: no file 'gone'"),
        ({"type": "javascript", "value": "true", "cwd": "../.."}, ".cwd: '../..' leaves the suites folder"),
        ({"type": "llm_grader", "prompt_file": "gone.md"}, ".prompt_file: no file 'gone.md'"),
        ({"type": "llm_grader", "prompt_file": "judge.md", "prompt": "x"}, ".prompt_file: the file says something"),
        ({"type": "tool_trajectory"}, ": this grader cannot fail: give at least one of expected, minimums"),
        ({"type": "step_count"}, ": this grader cannot fail: "),
        ({"type": "token_usage"}, ": this grader cannot fail: "),
        ({"type": "execution_metrics", "exploration_tolerance": 0.1}, ": this grader cannot fail: "),
        ({"type": "turns", "turns": [{}]}, ": this grader cannot fail: no turn has `assertions`"),
        (gate(type="threshold"), ".aggregator: the key 'threshold' is missing"),
        (gate(type="code_grader"), ".aggregator: the key 'command' is missing"),
        (gate(type="llm_grader"), ".aggregator: the key 'prompt' is missing"),
        (gate(type="safety_gate"), ".aggregator: this gate guards nothing"),
        (gate(type="safety_gate", required=["twins"]), ".aggregator: 'twins' is the name of no member; did you mean "),
        (gate(type="weighted_average", weights={"twin": 2}), ".aggregator: 'twin' is the name of 2 members"),
    ],
)
def test_one_that_cannot_fail_or_run_is_found(found, grader: dict[str, Any], problem: str) -> None:
    (only,) = found(**grader)
    assert only.startswith(problem)


def test_graders_inside_of_graders_are_checked_too(found) -> None:
    wrong = {"type": "regex", "value": "("}
    inner = {"type": "composite", "assertions": [YES, wrong]}
    outer = {"type": "turns", "turns": [{"assertions": [YES, inner]}], "conversation": [wrong]}
    assert [problem.partition(":")[0] for problem in found(**outer)] == [
        ".turns[0].assertions[1].assertions[1].value",
        ".conversation[0].value",
    ]
