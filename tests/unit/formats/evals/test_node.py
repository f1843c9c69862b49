"""JSON read strictly, with places."""

from typing import Any

import pytest

from passgate.tasks.formats.evals.node import JsonError, TextPlaces, find_offset, parse_json


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ('{"a": }', "not valid JSON: Expecting value", 6),
        ('{"a": 1} x', "not valid JSON: Extra data", 9),
        ('{"a": 1, "a": 2}', "duplicate key 'a'", 0),
        ('{"a": NaN}', "NaN is not a finite number", 0),
        ('{"a": 1e999}', "not a finite number", 0),
        ("1" * 101, "a number of more than 100 characters", 0),
        ("[" * 66 + "]" * 66, "nested deeper than 64 levels", 0),
        ("[" * 100_000 + "]" * 100_000, "nested too deep", 0),
        ('"\\ud83d"', "half of a character", 0),
    ],
)
def test_what_is_no_good_json_is_refused(text: str, message: str, offset: int) -> None:
    with pytest.raises(JsonError, match=message) as raised:
        parse_json(text)
    assert raised.value.offset == offset


TEXT = '\n{"a": {"b": [1, {"c": "x"}], "d\\n": 2},\n "e" : [ [ ] , 3 ]}'


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), "{"),
        (("a",), '{"b"'),
        (("a", "b", 1, "c"), '"x"'),
        (("a", "d\n"), "2"),
        (("e", 1), "3"),
        (("e", 0), "[ ]"),
        (("e", 7), "[ [ ]"),
        (("gone", "deeper"), "{"),
        (("a", "b", 0, "no"), "1"),
    ],
)
def test_a_value_is_found_or_its_nearest_parent(path: tuple[Any, ...], found: str) -> None:
    assert TEXT[find_offset(TEXT, path) :].startswith(found)


def test_a_key_is_found_and_a_problem_has_line_and_column() -> None:
    assert TEXT[find_offset(TEXT, ("a", "d\n"), at_key=True) :].startswith('"d\\n"')
    problem = TextPlaces("f.jsonl", TEXT, line=7).problem(("e", 1), "wrong")
    assert (problem.line, problem.column, problem.path) == (9, 16, "e[1]")
    assert find_offset('{"a": ', ("a", "b")) in range(7)


def test_good_json_is_read() -> None:
    assert parse_json('["\\ud83d\\ude00", 1, 2.5, true, null]') == ["\N{GRINNING FACE}", 1, 2.5, True, None]
    parse_json("[" * 64 + "]" * 64)
