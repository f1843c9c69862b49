"""Regular expressions that are found in every text."""

import re

import pytest
import regress

from passgate.tasks.graders.grader_checks.always_true import (
    javascript_finds_everything,
    python_finds_everything,
)

EVERYTHING = [
    "",
    ".*",
    ".*?",
    "x?$",
    "|yes",
    "yes|",
    "^",
    "$",
    "^(?:yes)?",
    "[^x]*",
    "\\^?",
    "(?=)",
    "(?!.*password)",
    "^[\\s\\S]*$",
    "^(?:.|\\n)*$",
]
CAN_FAIL = [
    "yes",
    ".",
    ".+",
    "\\S",
    "^.*$",
    "^\\s*$",
    "^yes|no$",
    "^[a-z]*$",
    "^.{0,280}$",
    "^(?!.*password)",
    "\\b",
    "\\bx?",
    "(?<=a)?x",
    "a|^b",
    "^(?:(a*))\\1$",
    "(",
]
TEXTS = ["", "x", "no", "password", "a\nb", "\n", "  ", "aab", "é\U0001f600", "long " * 100 + "password"]


@pytest.mark.parametrize("pattern", EVERYTHING)
def test_what_is_found_everywhere(pattern: str) -> None:
    assert python_finds_everything(pattern)
    assert javascript_finds_everything(pattern)
    assert all(re.search(pattern, text) and regress.Regex(pattern).find(text) for text in TEXTS)


@pytest.mark.parametrize("pattern", CAN_FAIL)
def test_what_can_be_missing(pattern: str) -> None:
    assert not python_finds_everything(pattern)
    assert not javascript_finds_everything(pattern)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("(?s)^.*$", True),
        ("(?i)^.*$", False),
        ("(?x) x? # all", False),
        ("(?i)x*", True),
        ("(?m)^.*$", True),
        ("(?im)^(.*)$", True),
        ("(?m)\\A.*$", True),
        ("(?m)^.*\\Z", True),
        ("(?m)\\A.*\\Z", False),
        ("(?m)^.+$", False),
        ("(?m)^\\s*$", False),
        ("(?m)^x?$", False),
        ("(?s:^.*$)", True),
        ("(?m:^.*$)", True),
        ("(?i:^.*$)", False),
        ("^(?s:.*)$", True),
        ("^(?i:.*)$", False),
        ("(?x: ^ .* $ )", False),
    ],
)
def test_flags_within_an_expression_of_python(pattern: str, found: bool) -> None:
    assert python_finds_everything(pattern) is found
    assert all(re.search(pattern, text) for text in TEXTS) or not found


@pytest.mark.parametrize(
    ("pattern", "flags", "found"),
    [
        ("^.*$", "s", True),
        ("^.*$", "m", True),
        ("^x?$", "m", False),
        ("x?", "y", True),
        ("x?$", "y", False),
        ("[^]*", "", True),
        ("x", "u", False),
    ],
)
def test_flags_of_an_expression_of_javascript(pattern: str, flags: str, found: bool) -> None:
    assert javascript_finds_everything(pattern, flags) is found
    assert not found or "y" in flags or all(regress.Regex(pattern, flags).find(text) for text in TEXTS)


def test_what_an_atomic_group_keeps_from_a_back_reference_can_be_missing() -> None:
    pattern = "^(?>(a*))\\1"
    assert re.search(pattern, "") is not None
    assert re.search(pattern, "a") is None
    assert not python_finds_everything(pattern)
