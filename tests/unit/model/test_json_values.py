import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.model.json_values import MISSING, at_path, parse_json, strictly_equal

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_a_document_is_equal_to_itself_read_back(document: Any) -> None:
    assert strictly_equal(document, json.loads(json.dumps(document)))


@given(documents, documents)
def test_equality_is_that_of_python_where_there_are_no_truth_values(left: Any, right: Any) -> None:
    if "true" not in (texts := json.dumps([left, right])) and "false" not in texts:
        assert strictly_equal(left, right) == (left == right)
    assert strictly_equal(left, right) == strictly_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        *((1, 1.0, True), (1, True, False), (0, False, False), (True, True, True), ({"a": 0}, {"a": False}, False)),
        *(([1, 2], (1, 2), True), (None, False, False), (b"x", "x", False), ({"a": 1}, {"a": 1, "b": 1}, False)),
    ],
)
def test_equality(left: Any, right: Any, equal: bool) -> None:
    assert strictly_equal(left, right) is equal


@given(st.lists(st.text("abc", min_size=1), max_size=5), documents)
def test_a_path_leads_to_what_was_put_there(keys: list[str], value: Any) -> None:
    document = value
    for key in reversed(keys):
        document = {key: document}
    assert at_path(document, ".".join(keys)) is value


@pytest.mark.parametrize("path", ["b", "a.2", "a.-1", "a.+1", "a.x", "a.0.b", "a.²", "a.", ".a", "a." + "9" * 5000])
def test_a_path_that_is_not_there_is_missing_and_null_is_there(path: str) -> None:
    assert at_path({"a": [1, None]}, path) is MISSING
    assert at_path({"a": [1, None]}, "a.1") is None


@pytest.mark.parametrize("text", ["", "nothing", "NaN", "[-Infinity]", '{"a": 1, "a": 1}', "1" * 5000, "[" * 1_000_000])
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_json(text)
