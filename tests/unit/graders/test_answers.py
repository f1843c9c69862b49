"""What an answer contains or equals, whether it is JSON, which patterns are found in it."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.bounded_search import LONGEST_TEXT
from passgate.tasks.graders.searches import javascript_found
from passgate.tasks.model.assertions import TextAssertion
from tests.unit.graders.options import output
from tests.unit.graders.trials import Graded, said
from tests.waiting import LIMIT

ANSWER = "  Hello World\nParis is the capital of France. \n"
JAVASCRIPT_BLANKS = "\ufeff\u3000\u2028Hello\x1c"
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}},
    "required": ["total"],
    "additionalProperties": False,
}
DRAFT_04 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize(
    ("options", "answer", "score"),
    [
        ({"type": "contains", "value": "Paris"}, ANSWER, 1.0),
        ({"type": "contains", "value": "paris"}, ANSWER, 0.0),
        ({"type": "icontains", "value": "pARIS"}, ANSWER, 1.0),
        ({"type": "contains_any", "value": ("Rome", "Paris")}, ANSWER, 1.0),
        ({"type": "contains_all", "value": ("Hello", "Paris")}, ANSWER, 1.0),
        ({"type": "contains_all", "value": ("Paris", "Rome")}, ANSWER, 0.0),
        ({"type": "icontains_any", "value": ("ROME", "PARIS")}, ANSWER, 1.0),
        ({"type": "icontains_all", "value": ("HELLO", "paris")}, ANSWER, 1.0),
        ({"type": "icontains_all", "value": ("HELLO", "rome")}, ANSWER, 0.0),
        ({"type": "starts_with", "value": "  Hello"}, ANSWER, 1.0),
        ({"type": "starts_with", "value": "World"}, ANSWER, 0.0),
        ({"type": "ends_with", "value": "France.  "}, ANSWER, 1.0),
        ({"type": "ends_with", "value": "France"}, ANSWER, 0.0),
        ({"type": "starts_with", "value": "Hello"}, JAVASCRIPT_BLANKS, 1.0),
        ({"type": "ends_with", "value": "Hello"}, JAVASCRIPT_BLANKS, 0.0),
        ({"type": "equals", "value": "42"}, "  42 \n", 1.0),
        *(({"type": "equals", "value": "yes"}, "Yes", 0.0), ({"type": "equals", "value": 42}, " 42\n", 1.0)),
        ({"type": "equals", "value": 42}, "42.0", 1.0),
        ({"type": "equals", "value": 42}, "forty-two", 0.0),
        *(({"type": "equals", "value": True}, "1", 0.0), ({"type": "equals", "value": None}, "", 0.0)),
        ({"type": "equals", "value": {"a": None, "b": [1, 2]}}, '{"b": [1, 2], "a": null}', 1.0),
        ({"type": "equals", "value": []}, "[" * 100_000, 0.0),
        *(({"type": "is_json"}, '{"a": 1}', 1.0), ({"type": "is_json"}, "", 0.0)),
        ({"type": "is_json"}, '```json\n{"a": 1}\n```', 0.0),
        ({"type": "is_json"}, "[" * 1_000_000, 0.0),
        ({"type": "is_json", "value": SCHEMA}, '{"total": 3}', 1.0),
        ({"type": "is_json", "value": SCHEMA}, '{"total": "3"}', 0.0),
        ({"type": "is_json", "value": {}}, '{"total": 3}', 1.0),
        *((output(equals="42"), "42\n", 1.0), (output(equals="42"), "42.0", 0.0)),
        (output(equals="STRASSE", ignore_case=True), "Straße", 1.0),
        (output(contains=("one", "two")), "one two", 1.0),
        (output(contains=("one", "three")), "one two", 0.5),
        (output(contains=("one",), ignore_case=True), "ONE", 1.0),
        (output(not_contains=("three",)), "one two", 1.0),
        (output(not_contains=("three", "two")), "one two", 0.5),
        (output(not_contains=("two",), ignore_case=True), "one TWO", 0.0),
        (output(matches=r"order \d+"), "order 17 is open", 1.0),
        (output(matches=r"order \d+"), "order xy is open", 0.0),
        (output(matches=r"order \d+", ignore_case=True), "ORDER 17", 1.0),
        (output(contains=["Zürich", "12 000 CHF"]), "In Zu\u0308rich, 12\u00a0000\u202fCHF.", 1.0),
        (output(equals="Zu\u0308rich"), "Zürich\u00a0", 1.0),
        (output(not_contains=["12 000"]), "12\u00a0000", 0.0),
        (output(json_schema=SCHEMA), ' {"total": 3}\n', 1.0),
        (output(json_schema=SCHEMA), '{"total": -3}', 0.0),
        (output(json_schema=SCHEMA), '{"total": 3, "more": 1}', 0.0),
        (output(json_schema=SCHEMA), '```json\n{"total": 3}\n```', 0.0),
        (output(json_schema=DRAFT_07 | {"dependencies": {"total": ["by"]}}), '{"total": 3}', 0.0),
        (output(json_schema=DRAFT_07 | {"items": [{"const": "a"}], "additionalItems": False}), '["a", "b"]', 0.0),
        (output(json_schema=DRAFT_04 | {"minimum": 3, "exclusiveMinimum": True}), "3", 0.0),
        (output(json_schema={"dependencies": {"total": ["by"]}}), '{"total": 3}', 1.0),
        *((output(json_schema={}), '{"total": NaN}', 0.0), (output(json_schema={}), "null", 1.0)),
        ({"type": "regex", "value": "capital"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": "^Paris"}, ANSWER.strip(), 0.0),
        ({"type": "regex", "value": "^Paris", "flags": "m"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": "hello world", "flags": "i"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": "Hello.*France"}, ANSWER.strip(), 0.0),
        ({"type": "regex", "value": "Hello.*France", "flags": "s"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": "Paris", "flags": "y"}, ANSWER.strip(), 0.0),
        ({"type": "regex", "value": "Hello", "flags": "y"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": r"\p{Lu}aris", "flags": "u"}, ANSWER.strip(), 1.0),
        ({"type": "regex", "value": r"\p{Lu}aris"}, ANSWER.strip(), 0.0),
    ],
)
async def test_the_score_of_an_answer(options: dict[str, Any], answer: str, score: float, graded: Graded) -> None:
    result = await graded(options, answer)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert result.type == options["type"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("contains", ("a", "b")), ("contains_all", "a"), ("contains_any", ()), ("contains", ""), ("starts_with", " \n")],
)
def test_options_that_ask_nothing_or_the_wrong_thing_are_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValidationError):
        TextAssertion(type=kind, value=value)


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
        (output(json_schema={"$schema": "draft-07"}), "json_schema cannot be used: 'draft-07' names no known draft"),
        ({"type": "is_json", "value": {"type": "integr"}}, "json_schema cannot be used: "),
        (output(ignore_case=True), "output_check has nothing to check"),
        ({"type": "regex", "value": "(["}, "/([/: no regular expression as JavaScript knows them"),
        ({"type": "regex", "value": "(?i)hello"}, "/(?i)hello/: no regular expression as JavaScript knows them"),
    ],
    ids=[
        *["invalid", "unknown reference", "unknown draft", "invalid for is_json", "nothing asked", "no pattern"],
        "a pattern of Python",
    ],
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


async def test_the_message_shows_the_pattern(graded: Graded) -> None:
    result = await graded({"type": "regex", "value": "^Paris", "flags": "m"}, ANSWER)
    assert "/^Paris/m" in result.checks[0].message


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        *((r"^\d+$", "٣", False), ("a$", "a\n", False), (r"^\s$", "\ufeff", True), ("^.$", "\ud800", True)),
        ("[^]", "\n", True),
        ("", "", True),
        ("needle$", "hay " * 1_000_000 + "needle", True),
    ],
)
async def test_where_javascript_differs_from_python(pattern: str, text: str, expected: bool) -> None:
    assert await javascript_found(pattern, "", text) is expected


@pytest.mark.parametrize(
    ("grader", "answer"),
    [
        ({"type": "regex", "value": FOREVER}, ENDLESS),
        ({"type": "is_json", "value": {"items": {"pattern": FOREVER}}}, json.dumps([ENDLESS])),
        (output(json_schema={"$defs": {"a": {"pattern": FOREVER}}, "$ref": "#/$defs/a"}), json.dumps(ENDLESS)),
        (output(json_schema={"patternProperties": {FOREVER: {}}}), json.dumps({ENDLESS: 1})),
    ],
    ids=["regex", "is_json", "json_schema", "names"],
)
async def test_a_pattern_that_takes_forever_is_an_error_and_stops_nothing_else(
    grader: dict[str, Any], answer: str, graded: Graded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("CPU_SECONDS", 1), ("WALL_SECONDS", LIMIT)):
        monkeypatch.setattr(f"passgate.tasks.files.bounded_search.{name}", seconds)
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    result = await graded(grader, answer)
    heart.cancel()
    assert "takes more than 1 s on this text" in result.error
    assert beats > 5


async def test_a_search_that_is_called_off_leaves_no_process() -> None:
    before = children()
    search = asyncio.create_task(javascript_found(FOREVER, "", ENDLESS))
    while children() == before:
        await asyncio.sleep(0.01)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert children() <= before


def children() -> set[str]:
    return {child for listed in Path("/proc/self/task").glob("*/children") for child in listed.read_text().split()}


async def test_a_text_without_bounds_is_not_searched() -> None:
    with pytest.raises(MeasurementError, match="is not searched for in 10000001 characters"):
        await javascript_found("a", "", "a" * (LONGEST_TEXT + 1))


@pytest.mark.parametrize(
    ("answer", "passed"),
    [("", True), ("yes", True), ("  yes\n", True), ("yes!", False), ("für", True), ("日本語", True)],
)
async def test_the_characters_of_the_answer_are_counted(graded: Graded, answer: str, passed: bool) -> None:
    found = await graded({"type": "max_length", "characters": 3}, answer)
    assert (found.passed, found.score, found.error) == (passed, float(passed), None)


async def test_the_message_says_both_lengths(graded: Graded) -> None:
    found = await graded({"type": "max_length", "characters": 3}, "too long")
    assert found.checks[0].message == "the answer has 8 characters, at most 3 are allowed"
