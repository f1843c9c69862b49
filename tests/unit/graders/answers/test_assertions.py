"""What an answer contains or equals, whether it is JSON, which patterns are found in it."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.assertions import LONGEST_TEXT, regex_found
from passgate.tasks.model.assertions import TextAssertion
from tests.unit.graders.trials import Graded, said

ANSWER = "  Hello World\nParis is the capital of France. \n"
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}},
    "required": ["total"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("kind", "value", "score"),
    [
        ("contains", "Paris", 1.0),
        ("contains", "paris", 0.0),
        ("icontains", "pARIS", 1.0),
        ("icontains", "Rome", 0.0),
        ("contains_any", ("Rome", "Paris"), 1.0),
        ("contains_any", ("Rome", "paris"), 0.0),
        ("contains_all", ("Hello", "Paris"), 1.0),
        ("contains_all", ("Paris", "Rome"), 0.0),
        ("icontains_any", ("ROME", "PARIS"), 1.0),
        ("icontains_any", ("ROME", "BERN"), 0.0),
        ("icontains_all", ("HELLO", "paris"), 1.0),
        ("icontains_all", ("HELLO", "rome"), 0.0),
        ("starts_with", "  Hello", 1.0),
        ("starts_with", "World", 0.0),
        ("starts_with", "hello", 0.0),
        ("ends_with", "France.  ", 1.0),
        ("ends_with", "France", 0.0),
    ],
)
async def test_answers_against_texts(kind: str, value: str | tuple[str, ...], score: float, graded: Graded) -> None:
    result = await graded({"type": kind, "value": value}, ANSWER)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert result.type == kind


async def test_blanks_are_those_of_javascript(graded: Graded) -> None:
    answer = "\ufeff\u3000\u2028Hello\x1c"
    assert (await graded({"type": "starts_with", "value": "Hello"}, answer)).passed
    assert not (await graded({"type": "ends_with", "value": "Hello"}, answer)).passed


@pytest.mark.parametrize(
    ("kind", "value"),
    [("contains", ("a", "b")), ("contains_all", "a"), ("contains_any", ()), ("contains", ""), ("starts_with", " \n")],
)
def test_options_that_ask_nothing_or_the_wrong_thing_are_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValidationError):
        TextAssertion(type=kind, value=value)


@pytest.mark.parametrize(
    ("answer", "value", "score"),
    [
        ("  42 \n", "42", 1.0),
        ("Yes", "yes", 0.0),
        ("42", " 42", 1.0),
        ("42", 42, 1.0),
        (" 42\n", 42, 1.0),
        ("42.0", 42, 1.0),
        ("43", 42, 0.0),
        ('"42"', 42, 0.0),
        ("forty-two", 42, 0.0),
        ("true", True, 1.0),
        ("1", True, 0.0),
        ("null", None, 1.0),
        ("", None, 0.0),
        ('{"b": [1, 2], "a": null}', {"a": None, "b": [1, 2]}, 1.0),
        ('{"b": [2, 1], "a": null}', {"a": None, "b": [1, 2]}, 0.0),
        ("NaN", 0, 0.0),
        ("[" * 100_000, [], 0.0),
    ],
)
async def test_answers_that_are_to_be_equal(answer: str, value: Any, score: float, graded: Graded) -> None:
    result = await graded({"type": "equals", "value": value}, answer)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            {"type": "contains_all", "value": ("Paris", "Rome", "Bern")},
            [
                "the answer contains 'Paris', as expected",
                "the answer does not contain 'Rome', but must",
                "the answer does not contain 'Bern', but must",
            ],
        ),
        ({"type": "contains", "value": "Paris", "negate": True}, ["the answer contains 'Paris', but must not"]),
        ({"type": "contains", "value": "Rome", "negate": True}, ["the answer does not contain 'Rome', as expected"]),
    ],
)
async def test_messages_name_each_text(options: dict[str, Any], messages: list[str], graded: Graded) -> None:
    assert [check.message for check in (await graded(options, ANSWER)).checks] == messages


async def test_messages_are_bounded(graded: Graded) -> None:
    result = await graded({"type": "icontains_any", "value": ("Rome", "x" * 5000)}, ANSWER)
    message = result.checks[0].message
    assert message.startswith("the answer contains none of 'Rome', 'xxx")
    assert message.endswith(" (ignoring case), but must contain one of them")
    assert len(message) < 500
    message = (await graded({"type": "equals", "value": {"total": 3}}, "y" * 10_000)).checks[0].message
    assert 'expected {"total": 3}' in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("answer", "schema", "score"),
    [
        ('{"a": 1}', None, 1.0),
        (" 42\n", None, 1.0),
        ("null", None, 1.0),
        ("", None, 0.0),
        ('```json\n{"a": 1}\n```', None, 0.0),
        ("NaN", None, 0.0),
        ('{"a": Infinity}', None, 0.0),
        ("{'a': 1}", None, 0.0),
        ("[" * 1_000_000, None, 0.0),
        ('{"total": 3}', SCHEMA, 1.0),
        ('{"total": "3"}', SCHEMA, 0.0),
        ("3", SCHEMA, 0.0),
        ("total", SCHEMA, 0.0),
        ('{"total": 3}', {}, 1.0),
    ],
)
async def test_answers_that_are_to_be_json(
    answer: str, schema: dict[str, Any] | None, score: float, graded: Graded
) -> None:
    result = await graded({"type": "is_json", "value": schema}, answer)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


async def test_what_is_wrong_with_a_document_and_where(graded: Graded) -> None:
    result = await graded({"type": "is_json", "value": SCHEMA}, '{"total": "3"}')
    assert result.checks[0].message == "$.total: '3' is not of type 'integer'"


def output(**fields: Any) -> dict[str, Any]:
    return {"type": "output_check", **fields}


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
async def test_output_checks(answer: str, wanted: dict[str, Any], score: float, graded: Graded) -> None:
    result = await graded(output(**wanted), answer)
    assert (result.passed, result.score, result.error) == (score == 1.0, score, None)


async def test_the_final_answer_counts_and_no_other(graded: Graded) -> None:
    assert not (await graded(output(contains=("42",)), said("42", output="I do not know."))).passed


async def test_every_problem_of_a_document_has_its_place(graded: Graded) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    result = await graded(output(json_schema=schema), json.dumps(["x" * 100_000, 1, "y"]))
    message = result.checks[0].message
    assert "$[0]" in message
    assert "$[2]: 'y' is not of type 'integer'" in message
    assert len(message) < 1000


async def test_a_document_nested_deeper_than_the_schema_can_follow(graded: Graded) -> None:
    schema = {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}}
    result = await graded(output(json_schema=schema), "[" * 700 + "]" * 700)
    assert (result.passed, result.error) == (False, None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (output(json_schema={"type": "integr"}), "json_schema cannot be used: "),
        (output(json_schema={"$ref": "#/$defs/nowhere"}), "json_schema cannot be used: "),
        ({"type": "is_json", "value": {"type": "integr"}}, "json_schema cannot be used: "),
        (output(ignore_case=True), "output_check has nothing to check"),
        ({"type": "regex", "value": "(["}, "/([/: no regular expression as JavaScript knows them"),
        ({"type": "regex", "value": "(?i)hello"}, "/(?i)hello/: no regular expression as JavaScript knows them"),
    ],
    ids=["invalid", "unknown reference", "invalid for is_json", "nothing asked", "no pattern", "a pattern of Python"],
)
async def test_what_cannot_be_asked_is_an_error(options: dict[str, Any], error: str, graded: Graded) -> None:
    assert (await graded(options, "{}")).error.startswith(error)


async def test_a_schema_is_not_fetched_from_the_network(graded: Graded) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        schema = {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}
        result = await graded(output(json_schema=schema), "{}")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert result.score is None


FOREVER = "(a+)+$"
ENDLESS = "a" * 60 + "b"


@pytest.mark.parametrize(
    ("pattern", "flags", "score"),
    [
        ("capital", "", 1.0),
        ("^Paris", "", 0.0),
        ("^Paris", "m", 1.0),
        ("hello world", "", 0.0),
        ("hello world", "i", 1.0),
        ("Hello.*France", "", 0.0),
        ("Hello.*France", "s", 1.0),
        ("Paris", "y", 0.0),
        ("Hello", "y", 1.0),
        ("Paris", "gd", 1.0),
        (r"\p{Lu}aris", "u", 1.0),
        (r"\p{Lu}aris", "", 0.0),
    ],
)
async def test_a_pattern_is_found_as_javascript_finds_it(
    pattern: str, flags: str, score: float, graded: Graded
) -> None:
    result = await graded({"type": "regex", "value": pattern, "flags": flags}, ANSWER.strip())
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert f"/{pattern}/{flags}" in result.checks[0].message


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\d+$", "٣", False),
        ("a$", "a\n", False),
        (r"^\s$", "\ufeff", True),
        ("^.$", "\ud800", True),
        ("[^]", "\n", True),
        ("", "", True),
        ("needle$", "hay " * 1_000_000 + "needle", True),
    ],
)
async def test_where_javascript_differs_from_python(pattern: str, text: str, expected: bool) -> None:
    assert await regex_found(pattern, "", text) is expected


async def test_a_pattern_that_takes_forever_is_an_error_and_stops_nothing_else(graded: Graded) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    started = time.monotonic()
    result = await graded({"type": "regex", "value": FOREVER}, ENDLESS)
    heart.cancel()
    assert "takes more than 2 s on this text" in result.error
    assert beats > 20
    assert time.monotonic() - started < 60


async def test_a_search_that_is_called_off_leaves_no_process() -> None:
    before = children()
    search = asyncio.create_task(regex_found(FOREVER, "", ENDLESS))
    while children() == before:
        await asyncio.sleep(0.01)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert children() <= before


def children() -> set[str]:
    return {child for listed in Path("/proc/self/task").glob("*/children") for child in listed.read_text().split()}


async def test_a_text_without_bounds_is_not_searched() -> None:
    with pytest.raises(MeasurementError, match="too long for a regular expression"):
        await regex_found("a", "", "a" * (LONGEST_TEXT + 1))
