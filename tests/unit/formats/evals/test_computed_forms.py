"""Graders of what an agent did: tool calls, skills, limits."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import (
    ExpectedCall,
    FieldAccuracy,
    FieldCheck,
    IsJson,
    SkillTrigger,
    ToolTrajectory,
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


CANNOT_FAIL = "this grader cannot fail: give at least one of"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("tool_trajectory", f": {CANNOT_FAIL} expected, minimums"),
        ("tool_trajectory, expected: []", f": {CANNOT_FAIL} expected, minimums"),
        ("tool_trajectory, mode: exact", ": the key 'expected' is missing"),
        (
            "tool_trajectory, mode: in_order, expected: []",
            f": {CANNOT_FAIL} expected, minimums",
        ),
        (
            "tool_trajectory, mode: superset, expected: []",
            f": {CANNOT_FAIL} expected, minimums",
        ),
        ("tool_trajectory, mode: exact, minimums: {a: 1}", ".minimums: 'minimums' are for the mode 'any_order'"),
        ("tool_trajectory, mode: inorder, expected: [a]", '.mode: "inorder" is not one of the allowed values'),
        ("tool_trajectory, minimums: {a: -1}", ".minimums.a: must be at least 0, not -1"),
        ("tool_trajectory, minimums: {a: 1.5}", ".minimums.a: expected a whole number, not 1.5"),
        ("tool_trajectory, expected: [{tool: a, args: b}]", '.expected[0].args: expected a mapping or "any", not "b'),
        ("tool_trajectory, expected: [{args: {}}]", ".expected[0]: the key 'tool' is missing"),
        ("tool_trajectory, expected: [{tool: ''}]", ".expected[0].tool: must not be empty"),
        ("tool_trajectory, expected: [{tool: a, inputs: {}}]", ".expected[0].inputs: unknown key; did you mean 'inp"),
        ("tool_trajectory, expected: [{tool: a, args: {}, input: {b: 1}}]", ".expected[0].input: 'args' and 'input'"),
        ("tool_trajectory, expected: [3]", ".expected[0]: expected a mapping or a text, not 3"),
        ("tool_trajectory, expected: [a], args_match: equal", '.args_match: "equal" is not one of the allowed values'),
        ("trajectory:tool-used, value: 3", ".value: expected a text or a list or a mapping, not 3"),
        ("trajectory:tool-used, value: []", ".value: must not be empty"),
        ("trajectory:tool-used, value: {min: 1}", ".value: the key 'tools' is missing"),
        (
            "trajectory:tool-used, value: {name: a, min: 3, max: 1}",
            ": this grader cannot pass: `min` is 3",
        ),
        ("trajectory:tool-used, value: {name: a, min: x, max: 2}", '.value.min: expected a whole number, not "x"'),
        ("trajectory:tool-sequence, value: {mode: exact}", ".value: the key 'steps' is missing"),
        ("trajectory:tool-sequence, value: {steps: [a], mode: b}", '.value.mode: "b" is not one of the allowed values'),
        ("trajectory:tool-args-match, value: {name: a}", ".value: the key 'args' is missing"),
        ("trajectory:step-count, value: {type: tool}", f": {CANNOT_FAIL} min, max"),
        ("trajectory:step-count, value: {type: a, max: 1}", '.value.type: "a" is not one of the allowed values'),
        ("trajectory:goal-success, value: {gaol: a}", ".value.gaol: unknown key; did you mean 'goal'?"),
        ("execution_metrics", ": this grader cannot fail: give at least one of max_tool_calls, "),
        ("execution_metrics, exploration_tolerance: 0.1", ": this grader cannot fail: give "),
        ("token-usage", ": this grader cannot fail: give at least one of max_total, max_input, max_output"),
        ("execution_metrics, max_tokens: -1", ".max_tokens: must be at least 0, not -1"),
        ("execution_metrics, max_tokens: 1.5", ".max_tokens: expected a whole number, not 1.5"),
        ("execution_metrics, max_token: 1", ".max_token: unknown key; did you mean 'max_tokens'?"),
        ("latency", ": the key 'threshold' is missing"),
        ("cost, budget: a", '.budget: expected a number, not "a"'),
        ("skill-used, value: [a]", '.value: expected a text, not ["a"]'),
        ("skill-trigger", ": the key 'skill' is missing"),
        ("field_accuracy", ": the key 'fields' is missing"),
        ("field_accuracy, fields: []", ".fields: must not be empty"),
        ("field_accuracy, fields: [a]", '.fields[0]: expected a mapping, not "a"'),
        ("field_accuracy, fields: [{}]", ".fields[0]: the key 'path' is missing"),
        ("field_accuracy, fields: [{path: a, match: b}]", '.fields[0].match: "b" is not one of the allowed values'),
        ("field_accuracy, fields: [{path: a, weight: -1}]", ".fields[0].weight: must be at least 0, not -1"),
        ("field_accuracy, fields: [{path: a}], aggregation: mean", '.aggregation: "mean" is not one of the allowed va'),
        ("is-json, value: file://list.json", ".value: 'file://list.json': expected a mapping, not []"),
        ("is-json, value: file://bad.json", ".value: 'file://bad.json' is not JSON: "),
        ("is-json, value: {type: objekt}", ".value.type: not a JSON Schema: "),
        ("starts-with, value: ' '", ": starts_with takes a text that is not blank"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(tmp_path: Path, said: str, problem: str) -> None:
    files = {"evals/list.json": "[]", "evals/bad.json": "{"}
    (found,) = read(tmp_path, text=f"- {{type: {said}}}\n", files=files).problems
    assert found.startswith(f"[0]{problem}")


@pytest.mark.parametrize(
    ("kind", "value", "options"),
    [
        ("tool-used", "a*", {"tools": ("a*",)}),
        ("tool-used", ["a", "b"], {"tools": ("a", "b")}),
        ("tool-used", {"name": "a", "min": 2, "max": 3}, {"tools": ("a",), "min": 2, "max": 3}),
        ("tool-used", {"pattern": "a?"}, {"tools": ("a?",)}),
        ("tool_used", {"name": "a", "min": 0, "max": 0}, {"tools": ("a",), "min": 0, "max": 0}),
        ("tool-sequence", ["a", "b"], {"steps": ("a", "b")}),
        ("tool-sequence", {"mode": "exact", "steps": ["a"]}, {"steps": ("a",), "mode": "exact"}),
        (
            "tool-args-match",
            {"name": "a", "args": {"q": 1}, "mode": "exact", "defaults": {"n": 5}, "ignore": "b"},
            {"tool": "a", "args": {"q": 1}, "mode": "exact", "defaults": {"n": 5}, "ignore": ("b",)},
        ),
        ("step-count", {"type": "tool", "max": 4}, {"kind": "tool", "max": 4}),
        ("step-count", {"pattern": "read*", "min": 1}, {"pattern": "read*", "min": 1}),
    ],
)
def test_the_later_types_are_read(tmp_path: Path, kind: str, value: Any, options: dict[str, Any]) -> None:
    one = read(tmp_path, {"type": f"trajectory:{kind}", "value": value}).one
    assert one.model_dump(exclude_unset=True, exclude={"type"}) == options


@pytest.mark.parametrize("value", ["A flight is booked.", {"goal": "A flight is booked."}])
def test_a_goal_is_for_a_judge_that_sees_the_work(tmp_path: Path, value: Any) -> None:
    one = read(tmp_path, {"type": "trajectory:goal-success", "value": value, "provider": "p"}).one
    assert (one.type, one.criteria, one.target) == ("llm_grader", "A flight is booked.", "p")
    for variable in ("criteria", "input", "tool_calls", "output"):
        assert f"{{{{ {variable} }}}}" in one.prompt


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ({"type": "execution-metrics", "maxToolCalls": 3}, {"max_tool_calls": 3}),
        ({"type": "execution_metrics", "max-input-tokens": 9.0}, {"max_input_tokens": 9}),
        ({"type": "execution-metrics", "maxCostUsd": 0.5}, {"max_cost_usd": 0.5}),
        ({"type": "latency", "max_ms": 5}, {"threshold": 5}),
        ({"type": "cost", "threshold": 5}, {"budget": 5}),
        ({"type": "token_usage", "maxOutput": 5}, {"max_output": 5}),
    ],
)
def test_limits_have_several_names_in_every_case(tmp_path: Path, said: dict[str, Any], limits: dict[str, Any]) -> None:
    assert read(tmp_path, said).one.model_dump(exclude_unset=True, exclude={"type"}) == limits


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


def test_the_fields_of_an_answer(tmp_path: Path) -> None:
    fields: list[dict[str, Any]] = [
        {"path": "a.b[0]", "match": "numeric_tolerance", "tolerance": 0.1, "relative": True, "weight": 2},
        {"path": "c", "match": "date", "formats": ["DD/MM/YYYY"], "required": True},
        {"path": "d"},
    ]
    assert read(tmp_path, {"type": "field-accuracy", "aggregation": "minimum", "fields": fields}).one == FieldAccuracy(
        type="field_accuracy", aggregation="minimum", fields=tuple(FieldCheck.model_validate(field) for field in fields)
    )


def test_json_may_have_a_schema_also_of_a_file(tmp_path: Path) -> None:
    files = {"evals/s.json": '{"type": "object"}'}
    for value in ({"type": "object"}, "file://s.json"):
        one = read(tmp_path, {"type": "is-json", "value": value}, files=files).one
        assert one == IsJson(type="is_json", value={"type": "object"})
    missing = read(tmp_path, {"type": "is-json", "value": "file://none.json"})
    assert missing.cannot_run == ["[0].value: no file 'none.json'"]


CALLED = "return get_assert(output, context)\n"


@pytest.mark.parametrize(
    ("kind", "name", "text", "ending"),
    [
        ("python", "a.py", "def get_assert(output, context):\n    return True\n", CALLED),
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
    assert (graders.one.cwd, graders.cannot_run) == (".", [])


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("python", "a.py:check", "def other(): ...\n"),
        ("javascript", "a.js", "export default (output) => 1;\n"),
        ("javascript", "a.js:b", "output === 'a'"),
    ],
)
def test_a_script_that_cannot_be_called_cannot_run(tmp_path: Path, kind: str, name: str, text: str) -> None:
    file = name.split(":")[0]
    graders = read(tmp_path, {"type": kind, "value": f"file://{name}"}, files={f"evals/{file}": text})
    assert graders.cannot_run == [f"[0].value: {file!r} is not a script that passgate can call"]
    assert graders.one.value == f"file://{name}"
