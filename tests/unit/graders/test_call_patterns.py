from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.graders.call_patterns import argument, call_matches, value_matches
from passgate.tasks.model.graders import ToolPattern
from passgate.tasks.model.json_values import MISSING
from passgate.tasks.model.transcript import ToolCall


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ("a*", "abc", True),
        ("a*", "ABC", False),
        ("*@evil.example", "me@evil.example", True),
        ("*@evil.example", "me@evil.example.org", False),
        ("*secret*", "first\nsecret\nlast", True),
        ("[ab]?", "b1", True),
        ("5", 5, True),
        ("True", True, True),
        ("<=100", 100, True),
        ("<=100", 100.5, False),
        ("< 100", 99, True),
        ("<100", 100, False),
        (">1e3", 1001, True),
        (">=-1.5", -1.5, True),
        (">=-1.5", -2, False),
        ("==3", 3.0, True),
        ("==3", 4, False),
        ("!=3", 4, True),
        ("!=3", 3, False),
        (">100", "150", True),
        (">100", "many", False),
        (">100", None, False),
        (">0", True, False),
        (">0", [5], False),
        ("<=abc", "<=abc", True),
        ("=3", 3, False),
        (3, 3.0, True),
        (3, "3", False),
        (1, True, False),
        (True, True, True),
        (True, "True", False),
        (None, None, True),
        (None, 0, False),
        (["a*"], ["a*"], True),
        (["a*"], ["ab"], False),
        ({"a": 1}, {"a": 1.0}, True),
        ("*", MISSING, False),
        (None, MISSING, False),
        ("!=3", MISSING, False),
    ],
)
def test_a_value_matches_what_is_expected(expected: Any, actual: Any, matches: bool) -> None:
    assert value_matches(expected, actual) is matches


@given(st.integers(), st.integers())
def test_comparisons_agree_with_numbers(left: int, right: int) -> None:
    # Beyond 2**53 a limit that is written as a number is not told apart from its neighbours.
    right %= 2**53
    for text, holds in (("<", left < right), ("<=", left <= right), ("==", left == right)):
        assert value_matches(f"{text}{right}", left) is holds
    for text, holds in ((">", left > right), (">=", left >= right), ("!=", left != right)):
        assert value_matches(f"{text} {right}", left) is holds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("to", "x"),
        ("user.name", "plain"),
        ("user.id", 7),
        ("items.1", "b"),
        ("items.2", MISSING),
        ("user.id.deeper", MISSING),
        ("nothing", MISSING),
    ],
)
def test_an_argument_is_found_by_its_name_or_inside_another(name: str, value: Any) -> None:
    arguments = {"to": "x", "user": {"id": 7, "name": "nested"}, "user.name": "plain", "items": ["a", "b"]}
    assert argument(arguments, name) is value or argument(arguments, name) == value


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("transfer", True),
        ("trans*", True),
        ("Transfer", False),
        (ToolPattern(tool="*fer"), True),
        (ToolPattern(tool="transfer", params={"amount": ">100"}), True),
        (ToolPattern(tool="transfer", params={"amount": ">100", "to.bank": "evil*"}), True),
        (ToolPattern(tool="transfer", params={"amount": ">100", "to.bank": "good*"}), False),
        (ToolPattern(tool="transfer", params={"currency": "*"}), False),
        (ToolPattern(tool="refund", params={"amount": ">100"}), False),
    ],
)
def test_a_call_matches_a_pattern(pattern: str | ToolPattern, matches: bool) -> None:
    call = ToolCall(tool="transfer", arguments={"amount": 150, "to": {"bank": "evil bank"}})
    assert call_matches(pattern, call) is matches
