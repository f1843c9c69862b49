"""One problem per mistake, in words, with the nearest name."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.schema_check import check_schema, nearest, schema_validator, shown, validate, wrong_type
from tests.builders import SHIPPED


@pytest.fixture
def document(tmp_path: Path):
    def _document(text: str) -> Document:
        file = tmp_path / "file.yaml"
        file.write_text(text)
        return read_document(file, "file.yaml")

    return _document


def messages(document: Document, schema: dict[str, Any]) -> list[str]:
    found = check_schema(document, Draft202012Validator(schema))
    return [str(problem).removeprefix("file.yaml:") for problem in found]


MAPPING_OR_FALSE = {
    "anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"const": False, "type": "boolean"}]
}
TEXT_OR_TOOL = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "required": ["tool"]}]}
TWO_TEXTS = {"anyOf": [{"type": "string", "enum": ["ruff"]}, {"type": "string", "minLength": 1}]}
FILE_OR_COMMAND = {"anyOf": [{"required": ["file"]}, {"required": ["command"]}]}


@pytest.mark.parametrize(
    ("text", "schema", "message"),
    [
        ("1", {"type": "string"}, "1:1: expected a text, not 1"),
        ("1", {"type": ["string", "null"]}, "1:1: expected a text or nothing, not 1"),
        ("a", {"enum": ["abc", "xyz"]}, '1:1: "a" is not one of the allowed values; known: abc, xyz'),
        ("abd", {"enum": ["abc", "xyz"]}, "1:1: \"abd\" is not one of the allowed values; did you mean 'abc'?"),
        ("abd", {"const": "abc"}, "1:1: \"abd\" is not one of the allowed values; did you mean 'abc'?"),
        ("true", {"enum": ["abc", False]}, "1:1: true is not one of the allowed values; known: abc, false"),
        ("[]", {"minItems": 1}, "1:1: must not be empty"),
        ("[1]", {"minItems": 2}, "1:1: needs at least 2"),
        ("''", {"minLength": 1}, "1:1: must not be empty"),
        ("1", {"minimum": 2}, "1:1: must be at least 2, not 1"),
        ("3", {"maximum": 2}, "1:1: must be at most 2, not 3"),
        ("2", {"exclusiveMinimum": 2}, "1:1: must be more than 2, not 2"),
        ("2", {"exclusiveMaximum": 2}, "1:1: must be less than 2, not 2"),
        ("{a: 1}", {"required": ["a", "b"]}, "1:1: the key 'b' is missing"),
        ("{ab: 1}", {"properties": {"abc": {}}, "additionalProperties": False}, "1:2: ab: unknown key; "),
        ("{ab: 1}", {"propertyNames": {"enum": ["abc"]}}, "1:2: ab: unknown key; did you mean 'abc'?"),
        ("{compat: x}", {"properties": {}, "additionalProperties": False}, "1:2: compat: removed key: leave it out; "),
        ("{a: [x, 1]}", {"properties": {"a": {"items": {"type": "string"}}}}, "1:9: a[1]: expected a text, not 1"),
        ("x", {"pattern": "^a"}, "1:1: 'x' does not match '^a'"),
        ("3", TEXT_OR_TOOL, "1:1: expected a text or a mapping, not 3"),
        ("''", TEXT_OR_TOOL, "1:1: must not be empty"),
        ("{}", TEXT_OR_TOOL, "1:1: the key 'tool' is missing"),
        ("3", TWO_TEXTS, "1:1: expected a text, not 3"),
        ("''", TWO_TEXTS, "1:1: must not be empty"),
        ("{fil: a}", FILE_OR_COMMAND, "1:1: one of these keys is needed: file, command"),
        ("true", MAPPING_OR_FALSE, "1:1: expected a mapping or false, not true"),
        ("0", MAPPING_OR_FALSE, "1:1: expected a mapping or false, not 0"),
        ("'off'", MAPPING_OR_FALSE, '1:1: expected a mapping or false, not "off"'),
        ("{a: x}", MAPPING_OR_FALSE, '1:5: a: expected a whole number, not "x"'),
    ],
)
def test_a_mistake_is_said_in_words(document, text: str, schema: dict[str, Any], message: str) -> None:
    (found,) = messages(document(text), schema)
    assert found.startswith(message)


@pytest.mark.parametrize("text", ["false", "{a: 3}"])
def test_a_form_may_have_one_value(document, text: str) -> None:
    assert messages(document(text), MAPPING_OR_FALSE) == []


def test_every_mistake_is_found(document) -> None:
    texts = {"a": {"type": "string"}, "b": {"type": "string"}}
    schema = {"type": "object", "properties": texts, "required": ["c", "d"], "additionalProperties": False}
    assert len(messages(document("a: 1\nb: 2\ne: 3\nf: 4\n"), schema)) == 6


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("gradrs", ["graders", "gates"], "; did you mean 'graders'?"),
        ("zzz", ["b", "a", "a"], "; known: a, b"),
        ("zzz", [], ""),
        (None, ["None "], "; did you mean 'None '?"),
    ],
)
def test_the_nearest_name(name: object, known: list[str], text: str) -> None:
    assert nearest(name, known) == text


@pytest.mark.parametrize("name", ["task", "sandbox", "gates", "trial", "verdict"])
def test_every_shipped_schema_can_be_had(name: str) -> None:
    assert not schema_validator(name).is_valid(3)
    policy = SHIPPED.model_dump(mode="json", exclude_none=True)
    assert schema_validator(name).is_valid(policy) is (name == "gates")


class Number(BaseModel):
    number: int


def test_a_document_becomes_a_model_or_has_problems(document) -> None:
    validator = Draft202012Validator({"properties": {"number": {"type": "integer"}}})
    assert validate(Number, document("number: 3.0"), validator) == Number(number=3)
    (problem,) = validate(Number, document("\nnumber: x"), validator)
    assert (problem.line, problem.column, problem.message) == (2, 9, 'expected a whole number, not "x"')
    (problem,) = validate(Number, document("number: 1.0e+30"), Draft202012Validator({}))
    assert (problem.line, problem.column, problem.path) == (1, 9, "number")


def test_a_value_of_another_type_is_told_with_those_that_are_wanted() -> None:
    assert wrong_type("a", str) is wrong_type({}, list, dict) is None
    assert wrong_type(3, str, list) == "expected a text or a list, not 3"


def test_long_values_are_shown_cut_short(document) -> None:
    assert shown("a") == '"a"'
    assert len(shown("a" * 100)) == 60
    (message,) = messages(document("x" * 500), {"type": "integer"})
    assert len(message) < 120
    assert message.endswith("x...")
