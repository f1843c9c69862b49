"""Text from outside cannot steer what it is shown in."""

import html
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passgate.tasks.reports import escape

ANY_TEXT = st.text(st.characters(), max_size=300)
STEERING = st.lists(
    st.sampled_from(["\x1b", "[", "31m", "]8;;", "\x9b", "\x07", "##[", "::", "\r", "\n", "\u202e", "|", "@", "`", "x"])
).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m \x9b2Jcleared \x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "red cleared link"),
        ("a\x00b", r"a\x00b"),
        ("a\x1bb", r"a\x1bb"),
        ("a\x7fb", r"a\x7fb"),
        ("a\u202eb", r"a\u202eb"),
        ("a\ud800b", r"a\ud800b"),
        ("a\uffffb", r"a\uffffb"),
        ("a\U000e0041b", r"a\U000e0041b"),
        *[(f"one{end}two{end}", "one ⏎ two") for end in ("\n", "\r\n", "\r", "\v", "\x85", "\u2028")],
        ("tests/test_a.py::test_b ## title [x]", "tests/test_a.py::test_b ## title [x]"),
    ],
)
def test_printable_removes_ansi_sequences_and_shows_what_is_not_seen(text: str, shown: str) -> None:
    assert escape.printable(text, 99) == shown


def test_printable_ends_a_text_that_it_cuts_with_an_ellipsis() -> None:
    assert escape.printable("abcdef", 6) == "abcdef"
    assert escape.printable("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize("command", ["##[add-mask]e", "##vso[task.complete]", "##teamcity[testFailed]", "::error::x"])
def test_printable_breaks_commands_to_runners(command: str) -> None:
    shown = escape.printable(f"{command} {command}", 200)
    assert not re.search(r"##\w*\[|(?<!\S)::", shown)


@given(ANY_TEXT | STEERING, st.integers(min_value=1, max_value=80))
def test_printable_is_one_bounded_line_of_seen_characters(text: str, limit: int) -> None:
    shown = escape.printable(text, limit)
    assert len(shown) <= limit
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert "##[" not in shown


@given(ANY_TEXT | STEERING | st.text("a \n\t"), st.integers(min_value=1, max_value=80))
@example("abcdef g", 6)
def test_whatever_is_cut_ends_with_an_ellipsis(text: str, limit: int) -> None:
    for shown, whole in (
        (escape.printable(text, limit), escape.printable(text, 100_000)),
        (escape.xml_text(text, limit), escape.xml_text(text, 100_000)),
        *zip(
            escape.printable_lines(text, lines=1000, limit=limit),
            escape.printable_lines(text, lines=1000, limit=100_000),
            strict=True,
        ),
    ):
        assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


@pytest.mark.parametrize(
    ("text", "lines", "limit", "shown"),
    [
        ("\n  one\n\ttwo \n", 2, 99, ("  one", "    two")),
        ("\n".join(map(str, range(100))), 6, 99, ("0", "1", "2", "… 95 lines left out …", "98", "99")),
        ("a\x00\nabcdef\n ::error::x", 3, 5, (r"a\x00", "abcd…", r" \x3…")),
    ],
    ids=["short", "many lines", "long lines"],
)
def test_printable_lines_leaves_out_the_middle_and_cuts_each_line(
    text: str, lines: int, limit: int, shown: tuple[str, ...]
) -> None:
    assert escape.printable_lines(text, lines=lines, limit=limit) == shown


@given(ANY_TEXT | STEERING, st.integers(min_value=3, max_value=12))
def test_printable_lines_holds_its_bounds(text: str, lines: int) -> None:
    shown = escape.printable_lines(text, lines=lines, limit=30)
    assert len(shown) <= lines
    assert all(len(line) <= 30 for line in shown)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a&#124;b"),
        ("`code`", "&#96;code&#96;"),
        ("</details>", "&#60;/details&#62;"),
        ("@everyone", "@&#8203;everyone"),
        ("#12", "#&#8203;12"),
        ("https://evil.example", "https:&#8203;//evil.example"),
        ("www.evil.example", "www&#8203;.evil.example"),
        ("[a](b)", "&#91;a&#93;(b)"),
        ("**bold** ~~no~~", "&#42;&#42;bold&#42;&#42; &#126;&#126;no&#126;&#126;"),
        ("_soft_ fix_login_bug", "&#95;soft&#95; fix_login_bug"),
        ("&lt;", "&#38;lt;"),
        (r"\|", "&#92;&#124;"),
        ("two\nlines", "two ⏎ lines"),
    ],
)
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert escape.markdown(text) == escaped


@given(ANY_TEXT | STEERING)
def test_markdown_shows_the_printable_text_and_nothing_else(text: str) -> None:
    escaped = escape.markdown(text)
    assert not set(escaped) & set("<>|`*[]\\~$")
    assert html.unescape(escaped).replace("\u200b", "") == escape.printable(text, 300)


@given(st.lists(st.text("`a~ ")).map(tuple))
def test_nothing_ends_a_markdown_fence_but_its_own_end(lines: tuple[str, ...]) -> None:
    opening, *body, closing = escape.markdown_fence(lines).split("\n")
    assert opening == f"{closing}text"
    assert len(closing) >= 3
    assert not any(closing in line for line in body)


@given(ANY_TEXT | STEERING)
def test_xml_text_survives_a_parser_unchanged(text: str) -> None:
    element = ElementTree.Element("text", attribute="x")
    element.text = escape.xml_text(text, 200)
    parsed = ElementTree.fromstring(ElementTree.tostring(element))
    assert (parsed.text or "") == element.text
    assert len(element.text) <= 200


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("\x00" * 5, 10, r"\x00\x00\…"),
        ("abc", 3, "abc"),
        ("one\r\n  two\x00 ]]>", 99, "one\n  two\\x00 ]]>"),
    ],
)
def test_xml_text_keeps_lines_and_is_cut_where_escapes_make_it_longer(text: str, limit: int, shown: str) -> None:
    assert escape.xml_text(text, limit) == shown


def test_annotation_escapes_what_ends_a_command() -> None:
    assert escape.annotation("100%\r\n::error::") == "100%25%0D%0A::error::"
    assert escape.annotation_property("a,b:c%\n") == "a%2Cb%3Ac%25%0A"
