"""Expected and actual tool calls beside each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.tools import side_by_side
from passgate.tasks.model.transcript import ToolCall


def call(tool: str = "look", **arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def test_rows_are_aligned_numbered_and_marked() -> None:
    rows = [(call(), call(), True), (call(at=1), call("take", b=2, a=1), False), (None, call(), False)]
    assert side_by_side(rows).splitlines() == [
        "        expected        actual",
        "     1  look {}         look {}",
        '!    2  look {"at": 1}  take {"a": 1, "b": 2}',
        "!    3  (none)          look {}",
    ]


def test_long_calls_are_shown_around_the_first_difference() -> None:
    text = side_by_side([(call(text="x" * 500 + "A"), call(text="x" * 500 + "B"), False)])
    assert 'xA"}' in text
    assert 'xB"}' in text
    assert max(map(len, text.splitlines())) < 150


def test_long_calls_that_agree_are_shown_from_their_beginning() -> None:
    long = call(text="x" * 500)
    assert side_by_side([(long, long, True)]).count('look {"text": "xxx') == 2


def test_of_many_rows_those_around_the_first_difference_are_shown() -> None:
    rows = [(call(n=n), call(n=n), True) for n in range(100)]
    rows[50:] = [(call(n=n), None, False) for n in range(50, 100)]
    lines = side_by_side(rows).splitlines()
    assert lines[1].split()[0] == "46"
    assert lines[6].startswith("!   51")
    assert lines[-2:] == ["       (45 more before)", "       (25 more after)"]
    assert len(lines) == 33


def test_what_would_spoil_the_lines_is_escaped() -> None:
    text = side_by_side([(call("a\nb\x1b[31m", c="\r\n", d="ö\u2028\x9b\u202e"), None, False)])
    assert len(text.splitlines()) == 2
    assert all(line.isprintable() for line in text.splitlines())
    assert "a\\nb\\x1b[31m" in text
    assert "ö\\u2028\\x9b\\u202e" in text


texts = st.text(max_size=200)
tool_calls = st.builds(ToolCall, tool=texts, arguments=st.dictionaries(texts, texts, max_size=3))


@given(st.lists(st.tuples(tool_calls, tool_calls, st.booleans()), max_size=40))
def test_the_text_is_bounded(rows: list[tuple[ToolCall, ToolCall, bool]]) -> None:
    lines = side_by_side(rows).splitlines()
    assert len(lines) <= 33
    assert max(map(len, lines)) < 150
