"""Graders of what an agent did: tool calls, skills, limits."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import (
    Cost,
    ExecutionMetrics,
    ExpectedCall,
    FieldAccuracy,
    FieldCheck,
    IsJson,
    Latency,
    SkillTrigger,
    StepCount,
    TokenUsage,
    ToolArguments,
    ToolSequence,
    ToolTrajectory,
    ToolUsed,
)
from tests.unit.formats.evals.grader_lists import read


def test_a_trajectory_is_read(tmp_path: Path) -> None:
    said = {
        "type": "tool-trajectory",
        "mode": "in_order",
        "argsMatch": "superset",
        "expected": [
            {"tool": "a", "args": {"q": 1}, "args_match": ["q"], "max_duration_ms": 50},
            {"tool": "b", "args": "any", "argsMatch": "ignore"},
            {"tool": "c"},
            "d",
        ],
    }
    assert read(tmp_path, said).one == ToolTrajectory(
        type="tool_trajectory",
        mode="in_order",
        args_match="superset",
        expected=(
            ExpectedCall(tool="a", args={"q": 1}, args_match=("q",), max_duration_ms=50),
            ExpectedCall(tool="b", args="any", args_match="ignore"),
            ExpectedCall(tool="c"),
            ExpectedCall(tool="d"),
        ),
    )


@pytest.mark.parametrize("said", [{"expected": [{"tool": "a"}]}, {"minimums": {"a": 2}}])
def test_without_a_mode_the_order_does_not_matter(tmp_path: Path, said: dict[str, Any]) -> None:
    assert read(tmp_path, {"type": "tool_trajectory", **said}).one.mode == "any_order"


@pytest.mark.parametrize("mode", ["exact", "subset"])
def test_no_calls_at_all_can_be_expected(tmp_path: Path, mode: str) -> None:
    assert read(tmp_path, {"type": "tool_trajectory", "mode": mode, "expected": []}).one.expected == ()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, ": this grader cannot fail: give at least one of expected, minimums"),
        ({"expected": []}, ": this grader cannot fail: give at least one of expected, minimums"),
        ({"mode": "exact"}, ": the key 'expected' is missing"),
        ({"mode": "in_order", "expected": []}, ".expected: must not be empty"),
        ({"mode": "superset", "expected": []}, ".expected: must not be empty"),
        ({"mode": "exact", "minimums": {"a": 1}}, ".minimums: 'minimums' are for the mode 'any_order'"),
        (
            {"mode": "inorder", "expected": ["a"]},
            ".mode: \"inorder\" is not one of the allowed values; did you mean 'in_order'?",
        ),
        ({"minimums": {"a": -1}}, ".minimums.a: must be at least 0, not -1"),
        ({"minimums": {"a": 1.5}}, ".minimums.a: expected a whole number, not 1.5"),
        ({"expected": [{"tool": "a", "args": "some"}]}, ".expected[0].args: expected a mapping or 'any', not 'some'"),
        ({"expected": [{"args": {}}]}, ".expected[0]: the key 'tool' is missing"),
        ({"expected": [{"tool": ""}]}, ".expected[0].tool: must not be empty"),
        (
            {"expected": [{"tool": "a", "input": {}}]},
            ".expected[0].input: unknown key; known: args, args_match, max_duration_ms, tool",
        ),
        ({"expected": [3]}, ".expected[0]: expected a mapping or a text, not 3"),
        ({"expected": ["a"], "args_match": "equal"}, '.args_match: "equal" is not one of the allowed values'),
    ],
)
def test_a_wrong_trajectory_is_refused(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    (found,) = read(tmp_path, {"type": "tool_trajectory", **said}).problems
    assert found.startswith(f"[0]{problem}")


@pytest.mark.parametrize(
    ("kind", "value", "grader"),
    [
        ("tool-used", "a*", ToolUsed(type="tool_used", tools=("a*",))),
        ("tool-used", ["a", "b"], ToolUsed(type="tool_used", tools=("a", "b"))),
        ("tool-used", {"name": "a", "min": 2, "max": 3}, ToolUsed(type="tool_used", tools=("a",), min=2, max=3)),
        ("tool-used", {"pattern": "a?"}, ToolUsed(type="tool_used", tools=("a?",))),
        ("tool_used", {"name": "a", "min": 0, "max": 0}, ToolUsed(type="tool_used", tools=("a",), min=0, max=0)),
        ("tool-sequence", ["a", "b"], ToolSequence(type="tool_sequence", steps=("a", "b"))),
        (
            "tool-sequence",
            {"mode": "exact", "steps": ["a"]},
            ToolSequence(type="tool_sequence", steps=("a",), mode="exact"),
        ),
        (
            "tool-args-match",
            {"name": "a", "args": {"q": 1}, "mode": "exact", "defaults": {"n": 5}, "ignore": "limit"},
            ToolArguments(
                type="tool_arguments", tool="a", args={"q": 1}, mode="exact", defaults={"n": 5}, ignore=("limit",)
            ),
        ),
        ("step-count", {"type": "tool", "max": 4}, StepCount(type="step_count", kind="tool", max=4)),
        ("step-count", {"pattern": "read*", "min": 1}, StepCount(type="step_count", pattern="read*", min=1)),
    ],
)
def test_the_later_types_are_read(tmp_path: Path, kind: str, value: Any, grader: object) -> None:
    assert read(tmp_path, {"type": f"trajectory:{kind}", "value": value}).one == grader


@pytest.mark.parametrize("value", ["A flight is booked.", {"goal": "A flight is booked."}])
def test_a_goal_is_for_a_judge_that_sees_the_work(tmp_path: Path, value: Any) -> None:
    one = read(tmp_path, {"type": "trajectory:goal-success", "value": value, "provider": "p"}).one
    assert (one.type, one.criteria, one.target) == ("llm_grader", "A flight is booked.", "p")
    for variable in ("criteria", "input", "tool_calls", "output"):
        assert f"{{{{ {variable} }}}}" in one.prompt


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("tool-used", 3, ".value: expected a text or a list or a mapping, not 3"),
        ("tool-used", [], ".value: must not be empty"),
        ("tool-used", {"min": 1}, ".value: the key 'name' is missing"),
        ("tool-used", {"name": "a", "min": 3, "max": 1}, ".value: 'min' is 3 and 'max' is 1"),
        ("tool-used", {"name": "a", "min": "3", "max": 2}, '.value.min: expected a whole number, not "3"'),
        ("tool-sequence", {"mode": "exact"}, ".value: the key 'steps' is missing"),
        ("tool-sequence", {"steps": ["a"], "mode": "subset"}, '.value.mode: "subset" is not one of the allowed values'),
        ("tool-args-match", {"name": "a"}, ".value: the key 'args' is missing"),
        ("step-count", {"type": "tool"}, ".value: this grader cannot fail: give at least one of min, max"),
        ("step-count", {"type": "steps", "max": 1}, '.value.type: "steps" is not one of the allowed values'),
        ("goal-success", {"gaol": "a"}, ".value.gaol: unknown key; did you mean 'goal'?"),
    ],
)
def test_wrong_values_of_the_later_types_are_refused(tmp_path: Path, kind: str, value: Any, problem: str) -> None:
    (found,) = read(tmp_path, {"type": f"trajectory:{kind}", "value": value}).problems
    assert found.startswith(f"[0]{problem}")


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


def test_the_fields_of_an_answer(tmp_path: Path) -> None:
    said = {
        "type": "field-accuracy",
        "aggregation": "minimum",
        "fields": [
            {"path": "a.b[0]", "match": "numeric_tolerance", "tolerance": 0.1, "relative": True, "weight": 2},
            {"path": "c", "match": "date", "formats": ["DD/MM/YYYY"], "required": True},
            {"path": "d"},
        ],
    }
    assert read(tmp_path, said).one == FieldAccuracy(
        type="field_accuracy",
        aggregation="minimum",
        fields=(
            FieldCheck(path="a.b[0]", match="numeric_tolerance", tolerance=0.1, relative=True, weight=2),
            FieldCheck(path="c", match="date", formats=("DD/MM/YYYY",), required=True),
            FieldCheck(path="d"),
        ),
    )


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, ": the key 'fields' is missing"),
        ({"fields": []}, ".fields: must not be empty"),
        ({"fields": ["a"]}, '.fields[0]: expected a mapping, not "a"'),
        ({"fields": [{}]}, ".fields[0]: the key 'path' is missing"),
        (
            {"fields": [{"path": "a", "match": "exakt"}]},
            ".fields[0].match: \"exakt\" is not one of the allowed values; did you mean 'exact'?",
        ),
        ({"fields": [{"path": "a", "weight": -1}]}, ".fields[0].weight: must be at least 0, not -1"),
        ({"fields": [{"path": "a"}], "aggregation": "mean"}, '.aggregation: "mean" is not one of the allowed values'),
    ],
)
def test_wrong_fields_are_refused(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    (found,) = read(tmp_path, {"type": "field_accuracy", **said}).problems
    assert found.startswith(f"[0]{problem}")


def test_json_may_have_a_schema_also_of_a_file(tmp_path: Path) -> None:
    schema = {"type": "object"}
    files = {"evals/s.json": '{"type": "object"}', "evals/list.json": "[]", "evals/bad.json": "{"}
    assert read(tmp_path, {"type": "is-json", "value": schema}).one == IsJson(type="is_json", value=schema)
    assert read(tmp_path, {"type": "is-json", "value": "file://s.json"}, files=files).one.value == schema
    assert read(tmp_path, {"type": "is-json", "value": "file://none.json"}).cannot_run == [
        "[0].value: no file 'none.json'"
    ]
    for value, problem in (
        ("file://list.json", "[0].value: 'file://list.json': expected a mapping, not []"),
        ("file://bad.json", "[0].value: 'file://bad.json' is not JSON: "),
        ({"type": "objekt"}, "[0].value.type: not a JSON Schema: "),
    ):
        (found,) = read(tmp_path, {"type": "is-json", "value": value}).problems
        assert found.startswith(problem)


@pytest.mark.parametrize(
    ("kind", "name", "text", "ending"),
    [
        (
            "python",
            "a.py",
            "def get_assert(output, context):\n    return True\n",
            "return get_assert(output, context)\n",
        ),
        ("python", "a.py:check", "def check(output, context):\n    return 1\n", "return check(output, context)\n"),
        ("python", "a.py", "output == 'a'", "output == 'a'"),
        ("javascript", "a.js", "module.exports = (output) => 1;", "return module.exports(output, context);\n"),
        ("javascript", "a.js:b", "module.exports.b = () => 1;", "return module.exports.b(output, context);\n"),
        ("javascript", "a.js", "output === 'a'", "output === 'a'"),
    ],
)
def test_a_script_may_stand_in_a_file(tmp_path: Path, kind: str, name: str, text: str, ending: str) -> None:
    graders = read(tmp_path, {"type": kind, "value": f"file://{name}"}, files={f"evals/{name.split(':')[0]}": text})
    assert text.strip() in graders.one.value
    assert graders.one.value.endswith(ending)
    assert graders.one.cwd == "."
    assert graders.cannot_run == []


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("python", "a.py:check", "def other(): ...\n"),
        ("javascript", "a.js", "export default (output) => 1;\n"),
        ("javascript", "a.js:b", "output === 'a'"),
    ],
)
def test_a_script_that_cannot_be_called_keeps_the_test_from_running(
    tmp_path: Path, kind: str, name: str, text: str
) -> None:
    file = name.split(":")[0]
    graders = read(tmp_path, {"type": kind, "value": f"file://{name}"}, files={f"evals/{file}": text})
    assert graders.cannot_run == [f"[0].value: {file!r} is not a script that passgate can call"]
    assert graders.one.value == f"file://{name}"


def test_a_blank_beginning_is_refused(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {"type": "starts-with", "value": " "}).problems
    assert found.startswith("[0]: starts_with takes a text that is not blank")
