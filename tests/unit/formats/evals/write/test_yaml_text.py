"""Documents as YAML that people read."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.write.files import yaml_text

CHARACTERS = st.sampled_from(list(" \n\t'\"#:-?|>&*!%@`{}[],.x0~é\u2028\x85\r\x07\ufeff=<yn1e")) | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=10)
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_reading_a_document_gives_what_was_written(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.mktemp("yaml") / "x.yaml"
    file.write_text(yaml_text({"a": value}), encoding="utf-8")
    document = read_document(file, "x.yaml")
    assert document.problems == []
    assert document.data == {"a": value}


def test_texts_of_several_lines_are_literal_blocks() -> None:
    assert yaml_text({"a": ["one\n\n  two\n"]}) == "a:\n  - |\n    one\n\n      two\n"


def test_a_long_line_stays_one_line() -> None:
    assert yaml_text({"a": "word " * 100 + "end"}).count("\n") == 1


@pytest.mark.parametrize("text", ["yes", "y", "null", "1e3", "0o17", "0x1f", "1_000", ".5", "12:30", "2026-01-31", "~"])
def test_what_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"a": text}) == f"a: '{text}'\n"


def test_the_same_value_twice_is_written_twice() -> None:
    shared = {"x": [1]}
    assert yaml_text({"a": shared, "b": shared}) == "a:\n  x:\n    - 1\nb:\n  x:\n    - 1\n"


def test_keys_stay_in_their_order(tmp_path: Path) -> None:
    assert list(yaml.safe_load(yaml_text({"b": 1, "a": 2}))) == ["b", "a"]
