"""The trend on one screen."""

from collections.abc import Callable

import pytest
from rich.cells import cell_len
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.trends import TREND, a_trend

from passgate.tasks.reports.trend import trend_screen


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(trend_screen(TREND, width=100, color=False, periods=True), "trend.txt")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked(width: int) -> None:
    text = trend_screen(TREND, width=width, color=False, periods=True)
    assert max(map(cell_len, text.split("\n"))) <= width


def test_it_fits_a_screen() -> None:
    many = TREND.model_copy(update={"changes": TREND.changes * 9, "flaky": TREND.flaky * 5})
    assert len(trend_screen(many, width=100, color=False).split("\n")) <= 60
    assert "more: --format json has all" in trend_screen(many, width=100, color=False)


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


def test_changes_of_the_last_week_stand_before_earlier_ones() -> None:
    text = trend_screen(TREND, width=100, color=False)
    places = [text.index(part) for part in ("Changed since 2026-04-01", "pass rate", "Changed earlier", "golden cost")]
    assert places == sorted(places)


def test_hostile_text_is_escaped() -> None:
    text = trend_screen(a_trend(HOSTILE), width=80, color=False, periods=True)
    assert not {"\x1b", "\x00", "\u202e", "\x9b"} & set(text)
    assert not any(line.startswith(("::", "##[", "ci_merge PASS")) for line in text.split("\n"))
