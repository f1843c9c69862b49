"""Placeholders in JSON values; how agents' requests use them is in test_http.py."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.http_templates import check_template, fill

texts = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_a_template_without_placeholders_is_itself(template: Any) -> None:
    check_template(template, "request")
    assert fill(template, {}) == template


@given(documents, texts, texts)
def test_within_a_text_a_value_is_its_json_and_a_text_is_itself(value: Any, before: str, after: str) -> None:
    whole = fill(f"{before}x{{{{inputs}}}}x{after}", {"inputs": value})
    inner = whole.removeprefix(f"{before}x").removesuffix(f"x{after}")
    assert inner == value if isinstance(value, str) else json.loads(inner) == value
