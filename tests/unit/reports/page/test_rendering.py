"""Texts from outside, as a page shows them."""

from passgate.tasks.reports.page.rendering import compared, shown


def test_a_short_text_is_shown_whole() -> None:
    one = shown("two\nlines", 100)
    assert (one.text, one.lines, one.left_out, one.folded) == ("two\nlines", 2, 0, False)


def test_a_long_text_is_folded_and_known_by_its_first_line() -> None:
    one = shown("first line\n" + "more\n" * 40, 1000)
    assert one.folded
    assert one.first_line == "first line"
    assert shown("word " * 400, 5000).folded
    assert len(shown("word " * 400, 5000).first_line) == 120


def test_of_a_text_beyond_the_limit_the_beginning_and_the_end_stay() -> None:
    one = shown("a" * 500 + "b" * 500, 100)
    assert one.text == f"{'a' * 75}\n… 900 characters left out …\n{'b' * 25}"
    assert one.left_out == 900


def test_texts_are_compared_line_by_line() -> None:
    found = compared("same\nold\nend", "same\nnew\nmore\nend", 1000)
    assert not found.same
    assert found.lines == (("same", "same"), ("old", "new"), (None, "more"), ("end", "end"))


def test_json_is_shown_and_compared_in_one_layout_and_very_long_texts_not_line_by_line() -> None:
    assert shown({"a": [1, "ü"]}, 100).text == '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'
    assert compared({"a": 1, "b": [2]}, '{"a":1,"b":[2]}', 1000).same
    assert not compared({"a": 1}, "no JSON", 1000).same
    assert compared("x\n" * 200, "y\n" * 200, 10_000).lines == ()
