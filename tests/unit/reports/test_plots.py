"""A trend and a forecast as pictures."""

import sys
from collections.abc import Callable
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from tests.unit.reports.forecasts import a_forecast
from tests.unit.reports.trends import POINTS, TREND, a_point

from passgate.tasks.errors import ExitCode, UsageError
from passgate.tasks.model.forecast import CurvePoint
from passgate.tasks.model.task import Suite
from passgate.tasks.reports.plots import forecast_plot, trend_image, trend_plot

BLUE, VERMILION = "#0072b2", "#d55e00"
SVG = "{http://www.w3.org/2000/svg}"
EVIDENCE = {"red": 0.01, "strict_red": 0.45}
PLOTS = [
    pytest.param(lambda: trend_plot(POINTS), id="trend"),
    pytest.param(lambda: forecast_plot(a_forecast()), id="forecast"),
]


def texts(svg: str) -> list[str]:
    return [" ".join("".join(element.itertext()).split()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str, color: str) -> int:
    """Curves of a colour with more than a few points, and not of the legend."""
    return sum(
        color in element.get("style", "") and element.get("d", "").count("L") >= 5
        for element in ElementTree.fromstring(svg).iter(f"{SVG}path")
    )


@pytest.fixture(autouse=True)
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.parametrize("plot", PLOTS)
def test_is_the_same_each_time_and_says_no_time(plot: Callable[[], str]) -> None:
    drawn = plot()
    assert plot() == drawn
    assert "dc:date" not in drawn


@pytest.mark.parametrize("plot", PLOTS)
def test_settings_of_the_user_have_no_say(plot: Callable[[], str]) -> None:
    import matplotlib

    before = plot()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "timezone": "Asia/Tokyo"}):
        assert plot() == before
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize("plot", PLOTS)
def test_missing_matplotlib_is_a_usage_error_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, plot: Callable[[], str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'passgate\[plot\]'") as caught:
        plot()
    assert caught.value.exit_code is ExitCode.BAD_INPUT


def test_has_a_panel_per_suite_from_0_to_100_percent_in_text() -> None:
    shown = texts(trend_plot(POINTS))
    assert [text for text in shown if text in set(Suite)] == ["golden", "adversarial", "open_ended"]
    assert shown.count("0 %") == shown.count("100 %") == 3


def test_runs_from_which_a_pass_rate_is_worse_have_another_colour_and_shape() -> None:
    points = [a_point(day, 0.61 if day == 4 else 0.95) for day in range(1, 6)]
    without, with_worse = trend_plot(points), trend_plot(points, TREND.changes)
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
    shown = texts(trend_plot([a_point(day, 0.95) for day in range(1, 6)]))
    assert "2026-04-02" in shown
    assert "2026-04-05" in shown


def test_runs_of_one_day_stand_in_their_order() -> None:
    start = a_point(1, 1.0).started_at
    minutes = (0, 1, 600)
    points = [a_point(1, 0.9, run_id=str(one), started_at=start + timedelta(minutes=one)) for one in minutes]
    shown = "\n".join(texts(trend_plot(points)))
    assert all(f"{time}" in shown for time in ("02:00", "02:01", "12:00"))


def test_a_run_has_one_place_whenever_its_suites_began() -> None:
    start = a_point(1, 1.0).started_at
    points = [
        a_point(1, 0.9, run_id=run_id, suite=suite, started_at=start + timedelta(minutes=minutes))
        for run_id, suite, minutes in [("a", Suite.GOLDEN, 0), ("a", Suite.OPEN_ENDED, 7), ("b", Suite.GOLDEN, 30)]
    ]
    assert [text for text in texts(trend_plot(points)) if ":" in text] == ["02:00", "02:30"]


def test_a_run_without_a_value_and_no_runs_are_shown_as_such() -> None:
    assert "no value: too little was measured" in texts(trend_plot([a_point(1, None), a_point(2, 0.9)]))
    assert texts(trend_plot([])) == ["No runs"]


def test_draws_this_policy_and_the_strict_rule_from_100_to_30_percent() -> None:
    svg = forecast_plot(a_forecast(**EVIDENCE))
    assert (lines(svg, BLUE), lines(svg, VERMILION)) == (1, 1)
    shown = texts(svg)
    assert {"100 %", "30 %", "0 %", "this policy", "strict rule: any failed task blocks"} <= set(shown)
    assert "ci_merge: how often the gate is red when one task falls" in shown


def test_marks_the_false_reds_of_both() -> None:
    shown = texts(forecast_plot(a_forecast(**EVIDENCE)))
    assert shown.count("unchanged") == 2
    assert {"1 %", "45 %"} <= set(shown)


def test_marks_that_would_cover_each_other_are_one() -> None:
    assert texts(forecast_plot(a_forecast(red=0.45, strict_red=0.46))).count("unchanged") == 1


def test_a_flat_curve_and_no_task_can_be_drawn() -> None:
    flat = tuple(CurvePoint(pass_rate=rate, red=0.0, strict_red=0.0) for rate in (1.0, 0.3))
    assert "0 %" in texts(forecast_plot(a_forecast(curve=flat, red=0.0, strict_red=0.0, tasks=())))
