"""The trend as JSON, CSV, Markdown and HTML."""

import csv
import json
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from passgate.tasks.model.trend import Trend, TrendPeriod
from passgate.tasks.reports.trend_files import trend_csv, trend_html, trend_json, trend_markdown

MakeTrend = Callable[[str], Trend]
FORMATS: dict[str, Callable[[Trend], str]] = {
    "trend.json": trend_json,
    "trend.csv": trend_csv,
    "trend.md": trend_markdown,
    "trend.html": lambda trend: trend_html(trend, ""),
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
def test_reads_as_the_golden_file(name: str, trend: Trend, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(FORMATS[name](trend), name)


@pytest.mark.parametrize("name", ["trend.csv", "trend.md", "trend.html"])
def test_hostile_text_is_escaped(name: str, make_trend: MakeTrend, hostile: str) -> None:
    text = FORMATS[name](make_trend(hostile))
    assert not INVISIBLE & set(text)
    assert "<script" not in text or name == "trend.csv"


def test_hostile_text_adds_nothing_to_the_page(make_trend: MakeTrend, hostile: str) -> None:
    clean, attacked = (Tags(trend_html(make_trend(text), "")).found for text in ("a", hostile))
    assert clean == attacked


def test_hostile_text_adds_no_row_or_cell_to_a_table(make_trend: MakeTrend, hostile: str) -> None:
    clean, attacked = (trend_markdown(make_trend(text)) for text in ("a", hostile))
    assert [line.count("|") for line in clean.split("\n")] == [line.count("|") for line in attacked.split("\n")]


def test_json_has_every_field_and_says_what_was_there(make_trend: MakeTrend) -> None:
    trend = make_trend("\x1b[31m\u202e")
    assert json.loads(trend_json(trend)) == trend.model_dump(mode="json")
    assert not INVISIBLE & set(trend_json(make_trend("\x1b")))


@pytest.mark.parametrize("formula", ["=1+1", "@SUM(A1)", "-2+3", "+cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(formula: str, make_trend: MakeTrend) -> None:
    header, first, _ = csv.reader(trend_csv(make_trend(formula)).splitlines())
    assert header == list(TrendPeriod.model_fields)
    assert first[1] == f"'{formula}"


def test_the_plot_is_in_the_page(trend: Trend) -> None:
    assert "<svg><path/></svg>" in trend_html(trend, '<?xml version="1.0"?><!DOCTYPE svg><svg><path/></svg>')
