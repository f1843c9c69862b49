"""Lasting changes of a history: dated, named, with the commits between."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bench.change_points import Planted
from bench.generated_history import commit_of, night_id, tables, task_names

from passgate.tasks.commands.trend import TrendRequest, make_trend
from passgate.tasks.commands.trend_changes import flaky_tasks, trend_changes
from passgate.tasks.errors import UsageError
from passgate.tasks.history.summaries import task_summaries
from passgate.tasks.model.history import Quantity
from passgate.tasks.model.names import Period
from passgate.tasks.model.task import Suite

NIGHTS = 60
REGRESSION = Planted("", "passed", 12, 50, 0.7)
LATENCY = Planted("", "latency", 33 + 2, 30, 0.45)
WHOLE = TrendRequest()
DRIFT = Planted("", "cost", 33 + 3, 20, 0.6, nights=24)


def history(*changes: Planted, nights: int = NIGHTS) -> pd.DataFrame:
    frame: pd.DataFrame = task_summaries(pa.concat_tables(tables(nights, 11, changes))).to_pandas()
    return frame


@pytest.fixture(scope="module")
def changed() -> pd.DataFrame:
    return history(REGRESSION, LATENCY, DRIFT)


def with_change(summaries: pd.DataFrame, night: int, name: str, before: str, after: str) -> pd.DataFrame:
    """The summaries with another value of a column from a night on."""
    return summaries.assign(**{name: np.where(summaries["run_id"] >= night_id(night), after, before)})


def test_each_planted_change_is_told_by_one_run_with_its_task_and_commits(changed: pd.DataFrame) -> None:
    regression, latency, cost = trend_changes(changed)
    assert (regression.quantity, regression.suite) == (Quantity.PASS_RATE, Suite.ADVERSARIAL)
    assert regression.tasks == (task_names()[12][1],)
    assert (regression.first_after.run_id, regression.is_worse, regression.until) == (night_id(50), True, None)
    assert (regression.last_before.git_commit, regression.first_after.git_commit) == (commit_of(49), commit_of(50))
    assert regression.before > 0.9 > 0.4 > regression.after
    assert (latency.quantity, latency.suite, latency.tasks) == (Quantity.LATENCY, Suite.OPEN_ENDED, ())
    assert abs(int(latency.first_after.run_id[-4:], 16) - 30) <= 3
    assert latency.after / latency.before == pytest.approx(1.57, abs=0.15)
    assert (cost.quantity, cost.suite, cost.is_worse) == (Quantity.COST, Suite.FAILURE_REPLAYS, True)
    assert abs(int(cost.first_after.run_id[-4:], 16) - 20) <= 3
    assert cost.until is not None
    changes = regression, latency, cost
    assert {change.told_by for change in changes} <= {*map(night_id, range(NIGHTS))}
    assert all(change.told_by >= change.first_after.run_id for change in changes)


def test_a_slow_change_of_a_suite_hides_no_later_one_of_a_task() -> None:
    changes = trend_changes(history(DRIFT, Planted("", "cost", 27, 80, 1.0), nights=100))
    nights = [(one.tasks, int(one.first_after.run_id[-4:], 16)) for one in changes if one.quantity is Quantity.COST]
    assert ((task_names()[27][1],), 80) in nights
    assert any(not tasks and abs(night - 20) <= 5 for tasks, night in nights)


def test_an_agent_that_fails_every_trial_of_the_newest_run_is_told_at_once() -> None:
    suite = Planted("", "passed", 33 + 1, 29, 1.0)
    changes = [one for one in trend_changes(history(suite, nights=30)) if one.told_by == night_id(29)]
    assert [(change.suite, change.quantity, change.after) for change in changes] == [
        (Suite.ADVERSARIAL, Quantity.PASS_RATE, 0.0)
    ]


def test_clean_nights_have_no_changes_and_flaky_tasks_are_named() -> None:
    summaries = history()
    assert trend_changes(summaries) == ()
    flaky = flaky_tasks(summaries)
    assert {(one.suite, one.task_id) for one in flaky} >= {
        (Suite(suite), name) for suite, name in task_names() if name.endswith("-0")
    }
    assert flaky[0].disagreement == pytest.approx(0.48, abs=0.1)


def test_what_else_changed_is_told_and_a_task_that_is_edited_is_another_task(
    changed: pd.DataFrame,
) -> None:
    moved = with_change(with_change(changed, 50, "model", "small", "large"), 50, "policy_digest", "p", "q")
    assert trend_changes(moved)[0].also_changed == ("model: small -> large", "policy")
    edited = trend_changes(with_change(changed, 50, "task_digest", "old", "new"))
    assert Quantity.PASS_RATE not in {change.quantity for change in edited}, "its rate before the edit says nothing"
    assert trend_changes(changed[:0]) == ()


def test_the_trend_is_of_the_gate_and_agent_of_the_newest_run(changed: pd.DataFrame) -> None:
    mixed = with_change(changed, 20, "agent", "oracle", "python:a:b")
    found = make_trend(mixed, WHOLE)
    assert (found.agent, found.runs, found.not_shown) == ("python:a:b", 40, ("nightly of oracle",))
    assert make_trend(mixed, TrendRequest(agent="oracle")).runs == 20
    assert make_trend(mixed, TrendRequest(task=task_names()[0][1])).last_week[0].tasks == 1
    assert make_trend(mixed, TrendRequest(model="small")).runs == 40
    of_change = with_change(changed, 20, "git_branch", "change", "main")
    assert [make_trend(of_change, TrendRequest(branch=name)).runs for name in ("change", "main")] == [20, 40]
    with pytest.raises(UsageError, match=r"no runs of the model large; it has runs of oracle, python:a:b at nightly"):
        make_trend(mixed, TrendRequest(model="large"))


@pytest.mark.parametrize(
    ("by", "periods", "label"),
    [(Period.DAY, 60, "2025-01-01"), (Period.WEEK, 9, "2025-W01"), (Period.VERSION, 1, "0.1.0")],
)
def test_periods_have_the_runs_of_their_time(changed: pd.DataFrame, by: Period, periods: int, label: str) -> None:
    found = [one for one in make_trend(changed, TrendRequest(by=by)).periods if one.suite is Suite.GOLDEN]
    assert (len(found), found[0].label, sum(one.runs for one in found)) == (periods, label, NIGHTS)


def test_the_last_week_and_the_one_before_it(changed: pd.DataFrame) -> None:
    found = make_trend(changed, WHOLE)
    weeks = [{one.runs for one in week} for week in (found.last_week, found.week_before)]
    assert (found.since, weeks) == ("2025-02-23", [{7}, {7}])
    assert found.seconds_per_verdict is not None
    assert found.cost_per_verdict == pytest.approx(sum(one.cost or 0 for one in found.last_week))
