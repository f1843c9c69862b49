"""The trend as a picture."""

import sys
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from tests.unit.reports.trends import POINTS, TREND, a_point

from passgate.tasks.errors import ExitCode, UsageError
from passgate.tasks.model.task import Suite
from passgate.tasks.reports.plots import trend_image
from passgate.tasks.reports.plots import trend_plot as plot

VERMILION, BLUE = "#d55e00", "#0072b2"


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg.encode())
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(autouse=True)
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


def test_has_a_panel_per_suite_from_0_to_100_percent_in_text() -> None:
    shown = texts(plot(POINTS))
    assert [text for text in shown if text in set(Suite)] == ["golden", "adversarial", "open_ended"]
    assert shown.count("0 %") == shown.count("100 %") == 3


def test_is_the_same_each_time_and_says_no_time() -> None:
    assert plot(POINTS) == plot(POINTS)
    assert "dc:date" not in plot(POINTS)


def test_settings_of_the_user_have_no_say() -> None:
    import matplotlib

    before = plot(POINTS)
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "timezone": "Asia/Tokyo"}):
        assert plot(POINTS) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_runs_from_which_a_pass_rate_is_worse_have_another_colour_and_shape() -> None:
    points = [a_point(day, 0.61 if day == 4 else 0.95) for day in range(1, 6)]
    without, with_worse = plot(points), plot(points, TREND.changes)
    assert VERMILION not in without
    assert VERMILION in with_worse
    assert "61 %" in texts(with_worse)
    assert "lastingly worse from here" in texts(with_worse)
    assert BLUE in with_worse


def test_the_same_as_png() -> None:
    image = trend_image(TREND.points, TREND.changes)
    assert image.startswith(b"\x89PNG")
    assert image == trend_image(TREND.points, TREND.changes)


def test_runs_of_several_days_stand_on_an_axis_of_days() -> None:
    shown = texts(plot([a_point(day, 0.95) for day in range(1, 6)]))
    assert "2026-04-02" in shown
    assert "2026-04-05" in shown


def test_runs_of_one_day_stand_in_their_order() -> None:
    start = a_point(1, 1.0).started_at
    minutes = (0, 1, 600)
    points = [a_point(1, 0.9, run_id=str(one), started_at=start + timedelta(minutes=one)) for one in minutes]
    shown = "\n".join(texts(plot(points)))
    assert all(f"{time}" in shown for time in ("02:00", "02:01", "12:00"))


def test_a_run_has_one_place_whenever_its_suites_began() -> None:
    start = a_point(1, 1.0).started_at
    points = [
        a_point(1, 0.9, run_id=run_id, suite=suite, started_at=start + timedelta(minutes=minutes))
        for run_id, suite, minutes in [("a", Suite.GOLDEN, 0), ("a", Suite.OPEN_ENDED, 7), ("b", Suite.GOLDEN, 30)]
    ]
    assert [text for text in texts(plot(points)) if ":" in text] == ["02:00", "02:30"]


def test_a_run_without_a_value_is_shown_as_such() -> None:
    assert "no value: too little was measured" in texts(plot([a_point(1, None), a_point(2, 0.9)]))


def test_no_runs_is_said() -> None:
    assert texts(plot([])) == ["No runs"]


def test_missing_matplotlib_is_a_usage_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'passgate\[plot\]'") as caught:
        plot(POINTS)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
