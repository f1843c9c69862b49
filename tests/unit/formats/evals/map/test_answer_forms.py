"""Graders of the final answer."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import FieldAccuracy, FieldCheck, IsJson
from tests.unit.formats.evals.grader_lists import read


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
