"""The trend as JSON and HTML."""

import json
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.trends import POINTS, TREND, a_trend

from passgate.tasks.model.history import Trend
from passgate.tasks.reports.page.environment import page_style
from passgate.tasks.reports.trend_files import trend_html, trend_json

FORMATS: dict[str, Callable[[Trend], str]] = {
    "trend.json": trend_json,
    "trend.html": lambda trend: trend_html(trend).replace(page_style(), "the style of every page"),
}
INVISIBLE = {"\x1b", "\x00", "\u202e", "\x9b", "\ud800"}


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("name", FORMATS)
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(FORMATS[name](TREND), name)


def test_hostile_text_is_escaped_and_adds_nothing_to_the_page() -> None:
    text = trend_html(a_trend(HOSTILE))
    assert not INVISIBLE & set(text)
    assert "<script" not in text
    assert Tags(text).found == Tags(trend_html(a_trend("a"))).found


def test_json_has_every_field_and_says_what_was_there() -> None:
    trend = a_trend("\x1b[31m\u202e")
    assert json.loads(trend_json(trend)) == trend.model_dump(mode="json")
    assert not INVISIBLE & set(trend_json(a_trend("\x1b")))


def test_each_suite_has_a_line_of_its_runs() -> None:
    html = trend_html(TREND.model_copy(update={"points": POINTS}))
    assert html.count("<polyline ") == 3, "of the suites that have a value"
    assert "golden: 6 runs, the last 61 %" in html
    assert html.count("<circle ") == 6 + 5 + 1
