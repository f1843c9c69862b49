"""JSON that somebody else wrote."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.transcripts import as_text, excerpt, read_json

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_json_is_read(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nothing",
        "NaN",
        "[-Infinity]",
        "1e999",
        '"\\ud800"',
        b'"\xff"',
        "1" * 5000,
        "[" * 1000 + "]" * 1000,
        "[" * 10**6,
    ],
)
def test_what_could_not_be_written_down_again_is_a_value_error(content: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_json(content)


@given(st.text() | st.binary())
def test_an_excerpt_is_short_and_can_be_written_down(content: str | bytes) -> None:
    assert len(excerpt(content).encode()) <= 301 * 4


def test_an_excerpt_says_that_it_is_one() -> None:
    assert excerpt(b"a" * 1000) == "a" * 300 + "…"
    assert excerpt(" whole\n") == "whole"


def test_a_text_is_itself() -> None:
    assert as_text("a\n") == "a\n"
    assert as_text({"ö": [1]}) == '{"ö": [1]}'
