"""A forecast and a burn-in in the terminal."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from rich.cells import cell_len
from tests.unit.reports.forecasts import a_forecast, a_task_forecast, an_advice, catches
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.forecast import BurnIn, Cause, Effort
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.forecast import burn_in_text, effort_text, forecast_text


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
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    assert yaml.safe_load("\n".join(lines)) == {"gates": {"ci_merge": {"regression": {"mode": "evidence"}}}}


def test_a_change_that_is_not_needed_or_does_not_suffice_is_said() -> None:
    shown = text(red=0.01, advice=None)
    assert section(shown, "the smallest change that brings FAIL to 2 %").strip() == "none is needed"
    assert "no one or two changes do that; these come closest" in text(advice=an_advice(reaches_target=False, red=0.1))
    assert "no change of the policy does that: repair the tasks above" in text(advice=an_advice(changes=()))


def test_tasks_that_may_not_block_are_named() -> None:
    withheld = [a_task_forecast(f"golden/t{number}", withheld=1.0, can_block=False) for number in range(5)]
    unable = a_task_forecast("golden/red", can_block=False)
    shown = " ".join(text(tasks=(*withheld, unable)).split())
    assert (
        "5 tasks (golden/t0, golden/t1, golden/t2 and 2 more) cannot block: not admitted yet, or in quarantine" in shown
    )
    assert "1 task (golden/red) cannot make the gate red, however far they fall" in shown
    assert "about 26 % of the tasks are not admitted" in " ".join(text(tasks=(a_task_forecast(withheld=0.26),)).split())


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ("history", "from 1200 trials of the history, each drawn towards the rate of all tasks"),
        ("assumed", "99 %, assumed"),
        ("file", "99 %, as the file says"),
        ("burn-in", "99 %, as measured"),
    ],
)
def test_says_where_the_rates_come_from(rates: str, said: str) -> None:
    assert said in text(140, rates=rates)


def test_says_what_the_baseline_is_and_the_span_of_rates_that_differ() -> None:
    assert "baseline    20 runs" in text()
    assert "baseline    assumed: as many runs" in text(baseline_runs=0)
    tasks = (a_task_forecast(), a_task_forecast("golden/b", pass_rate=0.8))
    assert "pass rates  80 % to 99 %" in text(tasks=tasks)


def test_without_reds_there_are_no_causes() -> None:
    assert "why it is red" not in text(causes=(), rules=())
    assert "why they were red" not in burned_in(red=0, rules=(), causes=())


def test_what_nobody_can_fall_to_is_said() -> None:
    shown = section(text(catches=catches(None, 0.6, 0.9)), "how often the gate catches one task that falls")
    assert "no task that can block passes more often" in shown


def test_what_is_not_known_of_the_cost_is_a_dash() -> None:
    assert effort_text(Effort(planned=9, confirming=0.0, saved=0.0)).splitlines() == [
        "trials  9.0 expected: 9 planned",
        "money   -",
        "time    -",
    ]
    full = effort_text(Effort(planned=9, confirming=1.5, saved=0.5, cost=2.0, seconds=4.2))
    assert full.splitlines() == [
        "trials  10.0 expected: 9 planned + 1.5 confirming - at most 0.5 saved early",
        "money   $2.00",
        "time    4.2 s",
    ]


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


def test_a_burn_in_says_how_many_runs_were_judged_and_why_it_was_cut_off() -> None:
    assert "50 runs: 50 were judged" in burned_in(first=0, judged=50)
    shown = burned_in(judged=5, why_ended="the cost cap of $2 is spent")
    assert "25 of 50 runs" in shown
    assert "note  the cost cap of $2 is spent" in shown


@pytest.mark.parametrize(("red", "said"), [(0.006, "within"), (0.17, "within"), (0.18, "outside"), (0.0, "outside")])
def test_says_whether_forecast_and_measurement_agree(red: float, said: str) -> None:
    assert f"lies {said} the 95 % interval" in burned_in(140, forecast=a_forecast(red=red))


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
