"""A forecast in the terminal."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from rich.cells import cell_len
from tests.unit.reports.forecasts import a_forecast, a_task_forecast, an_advice, catches
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.forecast import Effort
from passgate.tasks.reports.forecast import effort_text, forecast_text


def text(width: int = 100, **changes: Any) -> str:
    return forecast_text(a_forecast(**changes), width=width, color=False)


def section(shown: str, title: str) -> str:
    return shown.partition(f"\n{title}\n")[2].partition("\n\n")[0]


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(text(notes=("violations are not forecast: the history has none",)), "forecast.txt")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_asked_and_nothing_is_cut(width: int) -> None:
    shown = text(width)
    assert max(map(cell_len, shown.split("\n"))) <= width
    assert "…" not in shown


def test_the_lines_of_a_change_can_be_copied() -> None:
    shown = section(text(), "the smallest change that brings FAIL to 2 %")
    lines = [line for line in shown.splitlines() if line.startswith("    ")]
    assert yaml.safe_load("\n".join(lines)) == {"gates": {"ci_merge": {"regression": {"mode": "evidence"}}}}


def test_a_gate_that_is_rarely_red_needs_no_change() -> None:
    shown = text(red=0.01, advice=None)
    assert section(shown, "the smallest change that brings FAIL to 2 %").strip() == "none is needed"


def test_what_does_not_suffice_is_said() -> None:
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


def test_says_what_the_baseline_is() -> None:
    assert "baseline    20 runs" in text()
    assert "baseline    assumed: as many runs" in text(baseline_runs=0)


def test_rates_that_differ_are_a_span() -> None:
    tasks = (a_task_forecast(), a_task_forecast("golden/b", pass_rate=0.8))
    assert "pass rates  80 % to 99 %" in text(tasks=tasks)


def test_a_gate_without_reds_has_no_causes() -> None:
    assert "why it is red" not in text(causes=(), rules=())


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
    shown = text(
        agent=HOSTILE,
        tasks=(a_task_forecast(HOSTILE, withheld=1.0),),
        catches=catches(0.1, 0.2, 0.3, task=HOSTILE),
        notes=(HOSTILE,),
    )
    assert "\x1b" not in shown
    assert "\n::error" not in shown
