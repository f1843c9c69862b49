"""The trend on one screen and as a page."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from rich.cells import cell_len
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.trends import POINTS, TREND, a_trend

from passgate.tasks.reports.trend import trend_html, trend_screen


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(trend_screen(TREND, width=100, color=False, periods=True), "trend.txt")
    html = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", trend_html(TREND), flags=re.DOTALL)
    matches_golden(re.sub(r"sha256-[\w+/=]+", "sha256-", html), "trend.html")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked(width: int) -> None:
    text = trend_screen(TREND, width=width, color=False, periods=True)
    assert max(map(cell_len, text.split("\n"))) <= width


def test_it_fits_a_screen() -> None:
    many = TREND.model_copy(update={"changes": TREND.changes * 9, "flaky": TREND.flaky * 5})
    shown = trend_screen(many, width=100, color=False)
    assert len(shown.split("\n")) <= 60
    assert "... and 4 more with --format json" in shown


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cost_per_verdict": None}, "A verdict took 12m34s (median) in the last 7 days."),
        (
            {"changes": ()},
            "No change that chance does not explain (at most 0.1 false alarms are expected in 365 runs).",
        ),
        (
            {"changes": (), "runs": 8},
            "The history has too few runs: a change can be seen from the 9th run on.",
        ),
    ],
    ids=["no costs", "no changes", "few runs"],
)
def test_a_history_says_what_it_does_not_have(changes: dict[str, object], said: str) -> None:
    assert said in trend_screen(TREND.model_copy(update=changes), width=100, color=False)


def test_hostile_text_is_escaped() -> None:
    text = trend_screen(a_trend(HOSTILE), width=80, color=False, periods=True)
    assert not {"\x1b", "\x00", "\u202e", "\x9b"} & set(text)
    assert not any(line.startswith(("::", "##[", "ci_merge PASS")) for line in text.split("\n"))


def test_hostile_text_adds_nothing_to_the_page() -> None:
    text = trend_html(a_trend(HOSTILE))
    assert not {"\x1b", "\x00", "\u202e", "\x9b", "\ud800"} & set(text)
    assert text.count("<script") == 1
    assert Tags(text).found == Tags(trend_html(a_trend("a"))).found


def test_each_suite_has_a_line_of_its_runs() -> None:
    html = trend_html(TREND.model_copy(update={"points": POINTS}))
    assert html.count("<polyline ") == 3, "of the suites that have a value"
    assert "golden: 6 runs, the last 61 %" in html
    assert html.count("<circle ") == 6 + 5 + 1
