import json
import socket
from typing import Any

import pytest

from passgate.tasks.model.graders import OutputCheck
from tests.unit.graders.trials import Graded, said

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}},
    "required": ["total"],
    "additionalProperties": False,
}


def options(**fields: Any) -> OutputCheck:
    return OutputCheck(type="output_check", **fields)


@pytest.mark.parametrize(
    ("answer", "wanted", "score"),
    [
        ("42", {"equals": "42"}, 1.0),
        ("42\n", {"equals": "42"}, 1.0),
        ("42.0", {"equals": "42"}, 0.0),
        ("", {"equals": "42"}, 0.0),
        ("Yes", {"equals": "yes"}, 0.0),
        ("Straße", {"equals": "STRASSE", "ignore_case": True}, 1.0),
        ("one two", {"contains": ("one", "two")}, 1.0),
        ("one two", {"contains": ("one", "three")}, 0.5),
        ("ONE", {"contains": ("one",), "ignore_case": True}, 1.0),
        ("one two", {"not_contains": ("three",)}, 1.0),
        ("one two", {"not_contains": ("three", "two")}, 0.5),
        ("one TWO", {"not_contains": ("two",), "ignore_case": True}, 0.0),
        ("order 17 is open", {"matches": r"order \d+"}, 1.0),
        ("order xy is open", {"matches": r"order \d+"}, 0.0),
        ("ORDER 17", {"matches": r"order \d+", "ignore_case": True}, 1.0),
        ("ORDER 17", {"matches": r"order \d+"}, 0.0),
        ('{"total": 3}', {"json_schema": SCHEMA}, 1.0),
        (' {"total": 3}\n', {"json_schema": SCHEMA}, 1.0),
        ('{"total": -3}', {"json_schema": SCHEMA}, 0.0),
        ('{"total": true}', {"json_schema": SCHEMA}, 0.0),
        ('{"total": 3, "more": 1}', {"json_schema": SCHEMA}, 0.0),
        ("The total is 3.", {"json_schema": SCHEMA}, 0.0),
        ('```json\n{"total": 3}\n```', {"json_schema": SCHEMA}, 0.0),
        ('{"total": NaN}', {"json_schema": {}}, 0.0),
        ("", {"json_schema": {}}, 0.0),
        ("null", {"json_schema": {}}, 1.0),
        ("[" * 1_000_000, {"json_schema": {}}, 0.0),
    ],
)
async def test_answers(answer: str, wanted: dict[str, Any], score: float, graded: Graded) -> None:
    result = await graded(options(**wanted), answer)
    assert (result.passed, result.score, result.error) == (score == 1.0, score, None)


async def test_the_final_answer_counts_and_no_other(graded: Graded) -> None:
    assert not (await graded(options(contains=("42",)), said("42", output="I do not know."))).passed


async def test_every_problem_of_a_document_has_its_place(graded: Graded) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    answer = json.dumps(["x" * 100_000, 1, "y"])
    result = await graded(options(json_schema=schema), answer)
    message = result.checks[0].message
    assert "$[0]" in message
    assert "$[2]: 'y' is not of type 'integer'" in message
    assert len(message) < 1000


async def test_a_document_nested_deeper_than_the_schema_can_follow(graded: Graded) -> None:
    schema = {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}}
    result = await graded(options(json_schema=schema), "[" * 700 + "]" * 700)
    assert (result.passed, result.error) == (False, None)


@pytest.mark.parametrize(
    "schema",
    [{"type": "integr"}, {"$ref": "#/$defs/nowhere"}],
    ids=["invalid", "unknown_reference"],
)
async def test_a_schema_that_cannot_be_used_is_an_error(schema: dict[str, Any], graded: Graded) -> None:
    result = await graded(options(json_schema=schema), "{}")
    assert result.error.startswith("json_schema cannot be used: ")


async def test_a_schema_is_not_fetched_from_the_network(graded: Graded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        schema = {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}
        result = await graded(options(json_schema=schema), "{}")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert result.score is None


async def test_nothing_asked_is_no_pass(graded: Graded) -> None:
    result = await graded(options(ignore_case=True))
    assert (result.passed, result.score) == (False, None)
