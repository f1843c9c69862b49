"""What pages show: texts from outside, and the places of what charts draw."""

import pytest

from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports.page.rendering import (
    BIN_HEIGHT,
    BIN_WIDTH,
    BINS,
    answer_comparison,
    histogram,
    spark,
    text_view,
)


def test_a_short_text_is_shown_whole() -> None:
    one = text_view("two\nlines", 100)
    assert (one.text, one.lines, one.left_out, one.folded) == ("two\nlines", 2, 0, False)


def test_a_long_text_is_folded_and_known_by_its_first_line() -> None:
    one = text_view("first line\n" + "more\n" * 40, 1000)
    assert one.folded
    assert one.first_line == "first line"
    assert text_view("word " * 400, 5000).folded
    assert len(text_view("word " * 400, 5000).first_line) == 120


def test_of_a_text_beyond_the_limit_the_beginning_and_the_end_stay() -> None:
    one = text_view("a" * 500 + "b" * 500, 100)
    assert one.text == f"{'a' * 75}\n… 900 characters left out …\n{'b' * 25}"
    assert one.left_out == 900


def test_texts_are_compared_line_by_line() -> None:
    found = answer_comparison("same\nold\nend", "same\nnew\nmore\nend", 1000)
    assert not found.same
    assert found.lines == (("same", "same"), ("old", "new"), (None, "more"), ("end", "end"))


def test_json_is_shown_and_compared_in_one_layout_and_very_long_texts_not_line_by_line() -> None:
    assert text_view({"a": [1, "ü"]}, 100).text == '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'
    assert answer_comparison({"a": 1, "b": [2]}, '{"a":1,"b":[2]}', 1000).same
    assert not answer_comparison({"a": 1}, "no JSON", 1000).same
    assert answer_comparison("x\n" * 200, "y\n" * 200, 10_000).lines == ()


def test_a_spark_goes_from_the_oldest_run_to_the_newest() -> None:
    line = spark([EarlierRun("a", 0, 4), EarlierRun("b", 2, 4), EarlierRun("c", 4, 4)])
    assert line is not None
    assert line.points == "3.0,17.0 44.0,10.0 85.0,3.0"
    assert line.label == "last 3 runs, trials passed, newest last: 0/4, 2/4, 4/4"
    assert spark([]) is None


@pytest.mark.parametrize(
    ("now", "before"),
    [([1.0, 2.0, 4.0], [2.0, 8.0]), ([3.0], []), ([3.0, 3.0], [3.0]), ([1e-9, 1e9], [float("inf"), 0.0, -1.0])],
)
def test_every_bar_lies_within_the_chart(now: list[float], before: list[float]) -> None:
    shape = histogram(now, before)
    assert shape is not None
    for x, _, height in (*shape.now.bars, *shape.before.bars):
        assert 0 <= x <= (BINS - 1) * BIN_WIDTH
        assert 0 < height <= BIN_HEIGHT


def test_the_quantiles_are_those_of_the_figures() -> None:
    shape = histogram([float(value) for value in range(1, 101)], [5.0])
    assert shape is not None
    assert shape.now.quantiles == (("median", 50.5), ("P95", 95.0))
    assert shape.before.quantiles == (("median", 5.0), ("P95", 5.0))


def test_without_figures_there_is_no_chart() -> None:
    assert histogram([], [1.0]) is None
    assert histogram([0.0], [1.0]) is None
