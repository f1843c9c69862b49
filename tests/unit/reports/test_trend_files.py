"""The trend as JSON, CSV, Markdown and HTML."""

import csv
import json
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.trends import POINTS, TREND, a_trend

from passgate.tasks.model.trend import Trend, TrendPeriod
from passgate.tasks.reports.page.environment import page_style
from passgate.tasks.reports.trend_files import trend_csv, trend_html, trend_json, trend_markdown

FORMATS: dict[str, Callable[[Trend], str]] = {
    "trend.json": trend_json,
    "trend.csv": trend_csv,
    "trend.md": trend_markdown,
    "trend.html": lambda trend: trend_html(trend, "").replace(page_style(), "the style of every page"),
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


@pytest.mark.parametrize("name", ["trend.csv", "trend.md", "trend.html"])
def test_hostile_text_is_escaped(name: str) -> None:
    text = FORMATS[name](a_trend(HOSTILE))
    assert not INVISIBLE & set(text)
    assert "<script" not in text or name == "trend.csv"


def test_hostile_text_adds_nothing_to_the_page() -> None:
    clean, attacked = (Tags(trend_html(a_trend(text), "")).found for text in ("a", HOSTILE))
    assert clean == attacked


def test_hostile_text_adds_no_row_or_cell_to_a_table() -> None:
    clean, attacked = (trend_markdown(a_trend(text)) for text in ("a", HOSTILE))
    assert [line.count("|") for line in clean.split("\n")] == [line.count("|") for line in attacked.split("\n")]


def test_json_has_every_field_and_says_what_was_there() -> None:
    trend = a_trend("\x1b[31m\u202e")
    assert json.loads(trend_json(trend)) == trend.model_dump(mode="json")
    assert not INVISIBLE & set(trend_json(a_trend("\x1b")))


@pytest.mark.parametrize("formula", ["=1+1", "@SUM(A1)", "-2+3", "+cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(formula: str) -> None:
    header, first, _ = csv.reader(trend_csv(a_trend(formula)).splitlines())
    assert header == list(TrendPeriod.model_fields)
    assert first[1] == f"'{formula}"


def test_the_plot_is_in_the_page() -> None:
    assert "<svg><path/></svg>" in trend_html(TREND, '<?xml version="1.0"?><!DOCTYPE svg><svg><path/></svg>')


def test_without_a_plot_each_suite_has_a_line_of_its_runs() -> None:
    html = trend_html(TREND.model_copy(update={"points": POINTS}), "")
    assert html.count("<polyline ") == 3, "of the suites that have a value"
    assert "golden: 6 runs, the last 61 %" in html
    assert html.count("<circle ") == 6 + 5 + 1
