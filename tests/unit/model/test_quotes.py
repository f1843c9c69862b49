"""Texts that are cut where nobody knows the secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.model.quotes import beginning, cut, cut_middle, end


@given(st.text(st.sampled_from("ab \n"), max_size=80), st.integers(min_value=1, max_value=50))
def test_what_is_cut_off_begins_and_ends_with_whole_words(text: str, limit: int) -> None:
    first, last = beginning(text, limit), end(text, limit)
    assert max(len(first), len(last)) <= limit
    assert text.startswith(first)
    assert text.endswith(last)
    words = text.split()
    if len(text) > limit and len(first.split()) > 1:
        assert set(first.split()) <= set(words)
    if len(text) > limit and len(last.split()) > 1:
        assert set(last.split()) <= set(words)


@pytest.mark.parametrize(
    ("text", "limit", "first", "last"),
    [
        ("short", 10, "short", "short"),
        ("token ABCDEF", 8, "token", "ABCDEF"),
        ("token ABCDEF", 5, "token", "BCDEF"),
        ("ABCDEF token", 8, "ABCDEF", "token"),
        ("x" * 20, 8, "x" * 8, "x" * 8),
    ],
)
def test_a_word_across_the_border_is_left_out(text: str, limit: int, first: str, last: str) -> None:
    assert beginning(text, limit) == first
    assert end(text, limit) == last


def test_texts_that_are_cut_say_so() -> None:
    assert cut("x" * 60, 50) == f"{'x' * 50}… (10 characters more)"
    assert cut_middle("a" * 10 + "b" * 100, 100) == f"{'a' * 5}… (10 characters left out) …{'b' * 95}"
    assert cut_middle("short", 100) == "short"
