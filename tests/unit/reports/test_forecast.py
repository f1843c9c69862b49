"""A forecast and a burn-in in the terminal, and a forecast as a picture."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from rich.cells import cell_len
from tests.unit.reports.forecasts import RATES, a_forecast, a_task_forecast, an_advice, catches
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.forecast import BurnIn, Cause, CurvePoint, Effort
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.forecast import burn_in_text, forecast_plot, forecast_text


def text(width: int = 100, **changes: Any) -> str:
    return forecast_text(a_forecast(**changes), width=width, color=False)


def section(shown: str, title: str) -> str:
    return shown.partition(f"\n{title}\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_asked_and_nothing_is_cut(width: int) -> None:
    for shown in (text(width), burned_in(width)):
        assert max(map(cell_len, shown.split("\n"))) <= width
        assert "…" not in shown


def test_the_lines_of_a_change_can_be_copied() -> None:
    shown = section(text(), "the smallest change that brings FAIL to 2 %")
    lines = [line for line in shown.splitlines() if line.startswith("  ") and ":" in line]
    assert yaml.safe_load("\n".join(lines)) == {"gates": {"ci_merge": {"regression": {"mode": "evidence"}}}}


WITHHELD = tuple(a_task_forecast(f"golden/t{number}", withheld=1.0, can_block=False) for number in range(5))
UNABLE = (a_task_forecast("golden/red", can_block=False),)
LOWER = (a_task_forecast(), a_task_forecast("golden/b", pass_rate=0.8))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rates": "history"}, "from 1200 trials of the history, each drawn towards the rate of all tasks"),
        ({"rates": "assumed"}, "99 %, assumed"),
        ({"rates": "file"}, "99 %, as the file says"),
        ({"rates": "burn-in"}, "99 %, as measured"),
        ({"tasks": LOWER}, "pass rates  80 % to 99 %"),
        ({}, "baseline    20 runs"),
        ({"baseline_runs": 0}, "baseline    assumed: as many runs"),
        ({"catches": catches(None, 0.6, 0.9)}, "no task that can block passes more often"),
        ({"red": 0.01, "advice": None}, "\nthe smallest change that brings FAIL to 2 %\n✓ none is needed\n"),
        ({"advice": an_advice(reaches_target=False, red=0.1)}, "no one or two changes do that; these come closest"),
        ({"advice": an_advice(changes=())}, "no change of the policy does that: repair the tasks above"),
        (
            {"tasks": WITHHELD},
            "5 tasks (golden/t0, golden/t1, golden/t2 and 2 more) cannot block: not admitted yet, or in quarantine",
        ),
        ({"tasks": UNABLE}, "1 task (golden/red) cannot make the gate red, however far they fall"),
        ({"tasks": (a_task_forecast(withheld=0.26),)}, "about 26 % of the tasks are not admitted"),
    ],
)
def test_a_forecast_says_what_it_goes_by_and_what_would_help(changes: dict[str, Any], said: str) -> None:
    assert said in text(140, **changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"first": 0, "judged": 50}, "50 runs: 50 were judged"),
        ({"judged": 5}, "25 of 50 runs"),
        ({"why_ended": "the cost cap of $2 is spent"}, "note the cost cap of $2 is spent"),
        ({"forecast": a_forecast(red=0.006)}, "lies within the 95 % interval"),
        ({"forecast": a_forecast(red=0.17)}, "lies within the 95 % interval"),
        ({"forecast": a_forecast(red=0.18)}, "lies outside the 95 % interval"),
        ({"forecast": a_forecast(red=0.0)}, "lies outside the 95 % interval"),
    ],
)
def test_a_burn_in_says_what_was_judged_and_whether_the_forecast_agrees(changes: dict[str, Any], said: str) -> None:
    assert said in burned_in(140, **changes)


def test_without_reds_there_are_no_causes() -> None:
    assert "why it is red" not in text(causes=(), rules=())
    assert "why they were red" not in burned_in(red=0, rules=(), causes=())


@pytest.mark.parametrize(
    ("effort", "lines"),
    [
        (Effort(planned=9, confirming=0.0, saved=0.0), ["trials  9.0 expected: 9 planned", "money   -", "time    -"]),
        (
            Effort(planned=9, confirming=1.5, saved=0.5, cost=2.0, seconds=4.2),
            [
                "trials  10.0 expected: 9 planned + 1.5 confirming - at most 0.5 saved early",
                "money   $2.00",
                "time    4.2 s",
            ],
        ),
    ],
)
def test_what_is_not_known_of_the_cost_is_a_dash(effort: Effort, lines: list[str]) -> None:
    assert section(text(effort=effort), "what a verdict costs").splitlines() == lines


def test_names_from_outside_are_only_shown() -> None:
    falls = catches(0.1, 0.2, 0.3, task=HOSTILE)
    withheld = a_task_forecast(HOSTILE, withheld=1.0)
    for shown in (
        text(agent=HOSTILE, tasks=(withheld,), catches=falls, notes=(HOSTILE,)),
        burned_in(agent=HOSTILE, why_ended=HOSTILE, folder=HOSTILE),
    ):
        assert "\x1b" not in shown
        assert "\n::error" not in shown


def a_burn_in(**changes: Any) -> BurnIn:
    plain: dict[str, Any] = {
        "gate": GateName.CI_MERGE,
        "agent": "cli:my-agent",
        "folder": ".passgate/burn-in/20260131T120000Z-ci_merge-0a0b",
        "asked": 50,
        "first": 20,
        "judged": 30,
        "red": 1,
        "inconclusive": 2,
        "red_interval": Interval(low=0.006, high=0.17),
        "trials": 66.4,
        "confirming": 7.0,
        "saved": 0.6,
        "cost": 0.0123,
        "spent": 3.21,
        "rules": (Cause(rule=Rule.GOLDEN_REGRESSION, chance=1 / 30, share=1.0),),
        "causes": (Cause(rule=Rule.GOLDEN_REGRESSION, task="golden/fix_login", chance=1 / 30, share=1.0),),
        "forecast": a_forecast(
            red=0.012, inconclusive=0.05, effort=Effort(planned=60, confirming=7.2, saved=0.6, cost=0.01)
        ),
    }
    return BurnIn(**(plain | changes))


def burned_in(width: int = 100, **changes: Any) -> str:
    return burn_in_text(a_burn_in(**changes), width=width, color=False)


@pytest.mark.parametrize(
    ("shown", "file"),
    [
        (text(notes=("violations are not forecast: the history has none",)), "forecast.txt"),
        (burned_in(), "burn_in.txt"),
    ],
    ids=["forecast", "burn-in"],
)
def test_reads_as_the_golden_file(shown: str, file: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(shown, file)


SVG = "{http://www.w3.org/2000/svg}"
FLAT = tuple(CurvePoint(pass_rate=rate, red=0.0, strict_red=0.0) for rate in (1.0, 0.3))


def svg_texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_draws_this_policy_and_the_strict_rule_from_100_to_30_percent() -> None:
    svg = forecast_plot(a_forecast(red=0.01, strict_red=0.45))
    lines = list(ElementTree.fromstring(svg).iter(f"{SVG}polyline"))
    assert [len(line.attrib["points"].split()) for line in lines] == [len(RATES), len(RATES)]
    shown = svg_texts(svg)
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
    assert [one for one in svg_texts(forecast_plot(a_forecast(**changes))) if "unchanged" in one] == marks
