"""A forecast as a picture."""

from xml.etree import ElementTree

import pytest
from tests.unit.reports.forecasts import RATES, a_forecast

from passgate.tasks.model.forecast import CurvePoint
from passgate.tasks.reports.forecast_plot import forecast_plot

SVG = "{http://www.w3.org/2000/svg}"
FLAT = tuple(CurvePoint(pass_rate=rate, red=0.0, strict_red=0.0) for rate in (1.0, 0.3))


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_draws_this_policy_and_the_strict_rule_from_100_to_30_percent() -> None:
    svg = forecast_plot(a_forecast(red=0.01, strict_red=0.45))
    lines = list(ElementTree.fromstring(svg).iter(f"{SVG}polyline"))
    assert [len(line.attrib["points"].split()) for line in lines] == [len(RATES), len(RATES)]
    shown = texts(svg)
    assert {"100 %", "30 %", "0 %", "this policy", "strict rule: any failed task blocks"} <= set(shown)
    assert shown[0] == "ci_merge: how often the gate is red when one task falls"


@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ({"red": 0.01, "strict_red": 0.45}, ["45 % unchanged", "1 % unchanged"]),
        ({"red": 0.45, "strict_red": 0.46}, ["45 % unchanged"]),
        ({"red": 0.0, "strict_red": 0.0, "curve": FLAT, "tasks": ()}, ["0 % unchanged"]),
    ],
    ids=["both", "marks that would cover each other are one", "a flat curve and no task"],
)
def test_marks_the_false_reds(changes: dict[str, object], marks: list[str]) -> None:
    assert [text for text in texts(forecast_plot(a_forecast(**changes))) if "unchanged" in text] == marks
