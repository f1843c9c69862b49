"""A burn-in in the terminal."""

from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len
from tests.unit.reports.forecasts import a_forecast
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.forecast import BurnIn, Cause, Effort
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.forecast import burn_in_text


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


def text(width: int = 100, **changes: Any) -> str:
    return burn_in_text(a_burn_in(**changes), width=width, color=False)


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(text(), "burn_in.txt")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_asked_and_nothing_is_cut(width: int) -> None:
    shown = text(width)
    assert max(map(cell_len, shown.split("\n"))) <= width
    assert "…" not in shown


def test_runs_against_the_history_are_all_judged() -> None:
    assert "50 runs: 50 were judged" in text(first=0, judged=50)


def test_a_burn_in_that_was_cut_off_says_why() -> None:
    shown = text(judged=5, why_ended="the cost cap of $2 is spent")
    assert "25 of 50 runs" in shown
    assert "note  the cost cap of $2 is spent" in shown


@pytest.mark.parametrize(("red", "said"), [(0.006, "within"), (0.17, "within"), (0.18, "outside"), (0.0, "outside")])
def test_says_whether_forecast_and_measurement_agree(red: float, said: str) -> None:
    assert f"lies {said} the 95 % interval" in text(140, forecast=a_forecast(red=red))


def test_without_reds_there_are_no_causes() -> None:
    assert "why they were red" not in text(red=0, rules=(), causes=())


def test_names_from_outside_are_only_shown() -> None:
    shown = text(agent=HOSTILE, why_ended=HOSTILE, folder=HOSTILE)
    assert "\x1b" not in shown
    assert "\n::error" not in shown
