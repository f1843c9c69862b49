from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.graders.texts import OVERLAP, WINDOW, as_json, cut, ending, found, shorten

KEY = "sk-ant-" + "a1B2" * 24


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_short_text_stays_and_a_long_one_is_cut_and_says_so(text: str, limit: int) -> None:
    short = shorten(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        assert short == f"{text[:limit]}… ({len(text) - limit} characters more)"


@pytest.mark.parametrize("visible", range(1, len(KEY), 5))
def test_a_key_across_the_border_is_masked_before_the_text_is_cut(visible: int) -> None:
    before, after = "x" * (500 - visible - 1) + " ", " " + "y" * 1000
    assert KEY[:8] not in shorten(before + KEY + after, 500)
    assert KEY[:8] not in as_json(before[2:] + KEY + after)
    assert KEY[-8:] not in ending(" ".join(["x" * 1000, KEY, "y" * (500 - visible - 1)]), 500)


def test_what_is_no_message_is_cut_as_it_is() -> None:
    assert cut(KEY, 50) == f"{KEY[:50]}… ({len(KEY) - 50} characters more)"


def test_the_end_of_a_text() -> None:
    assert ending("  the end\n") == "the end"
    assert ending("a long way to the end", 7) == "…the end"


@pytest.mark.parametrize("start", [0, WINDOW - 3, WINDOW - OVERLAP - 3, 2 * (WINDOW - OVERLAP) + 1, 3 * WINDOW])
def test_a_match_is_found_wherever_it_lies(start: int) -> None:
    assert found("need+le", "x" * start + "needle" + "x" * (3 * WINDOW - start))


def test_no_match_in_a_long_text() -> None:
    assert not found("needle", "x" * (3 * WINDOW))


def test_the_beginning_is_only_the_beginning() -> None:
    assert not found("^needle", "x" * (WINDOW - OVERLAP) + "needle")
    assert found("^$", "")


def test_case_can_be_ignored() -> None:
    assert found("NEEDLE", "a needle", ignore_case=True)
    assert not found("NEEDLE", "a needle")


def test_json_is_bounded_in_length_and_depth() -> None:
    hidden = {KEY: [f"first\n{KEY}", (f"\t{KEY}",)]}
    assert KEY[8:] not in as_json(hidden), "an escape before a key hides no key"
    assert as_json({"a": "ä"}) == '{"a": "ä"}'
    assert len(as_json("x" * 10_000)) < 600
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert as_json(value) == "(nested too deep to show)"
