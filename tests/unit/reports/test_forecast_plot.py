"""A forecast as a picture."""

import sys
from xml.etree import ElementTree

import pytest
from tests.unit.reports.forecasts import a_forecast, a_task_forecast

from passgate.tasks.errors import UsageError
from passgate.tasks.model.forecast import CurvePoint
from passgate.tasks.reports.plots import forecast_plot as plot

BLUE, VERMILION = "#0072b2", "#d55e00"
SVG = "{http://www.w3.org/2000/svg}"
EVIDENCE = {"red": 0.01, "strict_red": 0.45}


@pytest.fixture(autouse=True)
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


def texts(svg: str) -> list[str]:
    return [" ".join("".join(element.itertext()).split()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def lines(svg: str, color: str) -> int:
    """Curves of a colour with more than a few points, and not of the legend."""
    return sum(
        color in element.get("style", "") and element.get("d", "").count("L") >= 5
        for element in ElementTree.fromstring(svg).iter(f"{SVG}path")
    )


def test_draws_this_policy_and_the_strict_rule_from_100_to_30_percent() -> None:
    svg = plot(a_forecast(**EVIDENCE))
    assert (lines(svg, BLUE), lines(svg, VERMILION)) == (1, 1)
    shown = texts(svg)
    assert {"100 %", "30 %", "0 %", "this policy", "strict rule: any failed task blocks"} <= set(shown)
    assert "ci_merge: how often the gate is red when one task falls" in shown


def test_marks_the_false_reds_of_both() -> None:
    shown = texts(plot(a_forecast(**EVIDENCE)))
    assert shown.count("unchanged") == 2
    assert {"1 %", "45 %"} <= set(shown)


def test_marks_that_would_cover_each_other_are_one() -> None:
    assert texts(plot(a_forecast(red=0.45, strict_red=0.46))).count("unchanged") == 1


def test_is_the_same_each_time_and_says_no_time() -> None:
    assert plot(a_forecast()) == plot(a_forecast())
    assert "dc:date" not in plot(a_forecast())


def test_a_flat_curve_and_no_task_can_be_drawn() -> None:
    flat = tuple(CurvePoint(pass_rate=rate, red=0.0, strict_red=0.0) for rate in (1.0, 0.3))
    assert "0 %" in texts(plot(a_forecast(curve=flat, red=0.0, strict_red=0.0, tasks=())))


def test_settings_of_the_user_have_no_say() -> None:
    import matplotlib

    before = plot(a_forecast())
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert plot(a_forecast()) == before


def test_missing_matplotlib_is_a_usage_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'passgate\[plot\]'"):
        plot(a_forecast(tasks=(a_task_forecast(),)))
