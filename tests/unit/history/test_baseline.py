"""Which earlier runs speak for a task, and what they say together."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.history.baseline import (
    COLUMNS,
    ErrorRates,
    baseline_state,
    error_rates,
    pool_baseline,
)
from passgate.tasks.history.columns import arrow_schema, rows
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Pins
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.task import EvalTask, Metric, Scoring, Suite
from tests.builders import a_plan, a_policy, a_task, trials_of

TASK = a_task()
PLAN = a_plan(TASK, run_id="20260201T000000Z-now")
KEY = "golden/say-yes"
NO_BASE, OF_ANCESTORS = Base(), Base(commit="9" * 40, ancestors=("2" * 40, "1" * 40))
PLAN_ON_BASE = PLAN.model_copy(update={"base": Base(commit="b" * 40, ancestors=("b" * 40, "a" * 40))})
NEW, NONE = BaselineTask(state=BaselineState.NEW), BaselineTask(state=BaselineState.NONE)
GREEN, RED, UNRELIABLE = BaselineState.GREEN, BaselineState.RED, BaselineState.UNRELIABLE
FIRST, SECOND, THIRD, FOURTH = "20260101", "20260102", "20260103", "20260104"


def run(run_id: str, statuses: str, task: EvalTask = TASK, *, model: str = "m", **changes: Any) -> pd.DataFrame:
    """The rows of an earlier run on main; `changes` are of its revision, or of its trials' metrics."""
    revision = {name: changes.pop(name) for name in ("branch", "commit", "dirty") if name in changes}
    plan = a_plan(task, run_id=run_id, revision=Revision(**({"branch": "main"} | revision)))
    trials = [one.model_copy(update={"model": model}) for one in trials_of(task, statuses, **changes)]
    return pd.DataFrame(rows(trials, plan), columns=arrow_schema().names)


def of(*runs: pd.DataFrame, plan: Plan = PLAN, models: Any = None) -> Baseline:
    return pool_baseline(plan, pd.concat(runs, ignore_index=True)[list(COLUMNS)], models)


def entry(*runs: pd.DataFrame, plan: Plan = PLAN, models: Any = None) -> BaselineTask:
    return of(*runs, plan=plan, models=models).tasks[KEY]


def with_baseline(**changes: Any) -> Plan:
    """The plan under a policy of another baseline."""
    policy = a_policy()
    return PLAN.model_copy(
        update={"policy": policy.model_copy(update={"baseline": policy.baseline.model_copy(update=changes)})}
    )


def pinned(commit: str | None = None, *runs: str, base: Base = NO_BASE) -> Plan:
    return PLAN.model_copy(update={"pins": Pins(commit=commit, runs=runs, reason="why", by="Ann"), "base": base})


def days(*statuses: str, task: EvalTask = TASK, first: int = 1, **changes: Any) -> list[pd.DataFrame]:
    """Runs of the days from the first one of 2026-01 on."""
    return [run(f"202601{day:02}", letters, task, **changes) for day, letters in enumerate(statuses, first)]


def test_runs_are_pooled_the_newest_first() -> None:
    assert entry(run("20260102", "fpp"), run("20260103", "ppp"), run("20260101", "ppp")) == BaselineTask(
        state=GREEN,
        runs=("20260103", "20260102", "20260101"),
        runs_green=2,
        green_in_a_row=1,
        passed=8,
        n=9,
        counts={"20260103": (3, 3), "20260102": (2, 3), "20260101": (3, 3)},
        newest=(True, True, True, True, True, False, True, True, True),
    )


@pytest.mark.parametrize(
    ("task", "runs", "state", "counted", "trials"),
    [
        (TASK, "ppp ppe", GREEN, (1, 1, 1), (5, 5)),  # A run that has not decided the task
        (TASK, "f--", RED, (1, 0, 0), (0, 1)),  # What was left out could change nothing
        (TASK, "pp-", BaselineState.NONE, (0, 0, 0), (2, 2)),  # What was left out could have decided
        (TASK, "ppe", BaselineState.NONE, (0, 0, 0), (2, 2)),
        (TASK, "eee", BaselineState.NONE, (0, 0, 0), (0, 0)),
        (TASK, "---p", BaselineState.NONE, (0, 0, 0), (0, 0)),  # Confirming trials alone
        (TASK, "pppff", GREEN, (1, 1, 1), (3, 3)),  # Confirming trials are run because a trial has failed
        (TASK, "ppp ppp ppp ppp fpp fpp", GREEN, (6, 4, 0), (16, 18)),
        (TASK, "ppp ppp ppp ppp fpp fpp ppf", RED, (7, 4, 0), (18, 21)),
        (TASK, "ppp ppp fff ppp ppp ppp", GREEN, (6, 5, 3), (15, 18)),
        (a_task(metric=Metric.PASS_AT_K), "pee", GREEN, (1, 1, 1), (1, 1)),
    ],
)
def test_what_runs_say_together(
    task: EvalTask, runs: str, state: BaselineState, counted: tuple[int, int, int], trials: tuple[int, int]
) -> None:
    found = entry(*days(*runs.split(), task=task), plan=a_plan(task, run_id="20260201"))
    assert (found.state, (len(found.runs), found.runs_green, found.green_in_a_row)) == (state, counted)
    assert (found.passed, found.n) == (sum(found.newest), len(found.newest)) == trials


@pytest.mark.parametrize(("score", "green"), [(0.9, 1), (0.7, 0)])
def test_scores_decide_where_the_task_goes_by_them(score: float, green: int) -> None:
    task = a_task(metric=Metric.MEAN, scoring=Scoring(threshold=0.8))
    found = entry(run(FIRST, "ppp", task).assign(score=score), plan=a_plan(task, run_id="20260201"))
    assert (found.runs, found.runs_green) == ((FIRST,), green)


@pytest.mark.parametrize(("most", "runs"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_only_the_newest_runs_are_pooled(most: int, runs: int) -> None:
    found = entry(*days("ppp", "ppp", "ppp"), plan=with_baseline(runs=most))
    assert (found.runs, found.n) == ((THIRD, SECOND, FIRST)[:runs], 3 * runs)


def test_every_task_has_its_own_newest_runs_and_those_of_nothing_but_errors_take_no_place() -> None:
    other = a_task(task_id="other")
    plan = with_baseline(runs=1).model_copy(update={"tasks": (TASK, other)})
    found = of(*days("ppp", "eee"), run(THIRD, "fff", other), plan=plan)
    assert {name: one.runs for name, one in found.tasks.items()} == {KEY: (FIRST,), "golden/other": (THIRD,)}
    assert found.runs == (FIRST, THIRD)


def test_what_trials_took_and_cost_comes_with_them_the_newest_first() -> None:
    found = entry(run(FIRST, "ppp", wall_time_seconds=1.5, cost=0.25), run(SECOND, "pe", wall_time_seconds=9.0))
    assert list(found.wall_times.items()) == [(SECOND, (9.0,)), (FIRST, (1.5, 1.5, 1.5))]
    assert found.costs == {FIRST: (0.25, 0.25, 0.25)}


@pytest.mark.parametrize(
    ("greens", "state"),
    [
        ("", BaselineState.NONE),
        *((greens, GREEN) for greens in ("g", "grg", "rrggggg", "rgrgrgggg", "rrg" + "g" * 17, "grrr" + "g" * 17)),
        *((greens, UNRELIABLE) for greens in ("gr", "rgrgrgrgg", "grgrgrgrr")),
        *((greens, RED) for greens in ("r", "grr", "grgrgrrrr", "rrr" + "g" * 17, "ggg" + "r" * 17)),
    ],
)
def test_two_thirds_are_green_and_one_third_or_three_in_a_row_red(greens: str, state: BaselineState) -> None:
    assert baseline_state([letter == "g" for letter in greens]) is state


@given(greens=st.lists(st.booleans(), min_size=1), position=st.integers(0, 30))
def test_a_run_more_that_passed_never_makes_it_worse(greens: list[bool], position: int) -> None:
    better = [green or number == position for number, green in enumerate(greens)]
    order = [RED, UNRELIABLE, GREEN]
    assert order.index(baseline_state(better)) >= order.index(baseline_state(greens))


@pytest.mark.parametrize(
    ("runs", "plan", "expected"),
    [
        ([run("20260201T000000Z-now", "ppp"), run("20260202", "ppp")], PLAN, NEW),
        ([run("20260202", "ppp")], pinned(None, "20260202"), NEW),
        (days("ppp", task=a_task(suite=Suite.FAILURE_REPLAYS)), PLAN, NEW),
        (days("ppp", task=a_task(task_id="other")), PLAN, NEW),
        (days("ppp", commit="a" * 40, dirty=True), PLAN_ON_BASE, NEW),
        (days("ppp"), PLAN.model_copy(update={"agent": AgentSpec(kind=AgentKind.CLI, target="my-agent --fast")}), NONE),
        (days("ppp", task=a_task(task_digest="another")), PLAN, NONE),
        (days("ppp", task=a_task(grader_digest="another")), PLAN, NONE),
        (days("ppp", task=a_task(k=4)), PLAN, NONE),
        (days("ppp", task=a_task(metric=Metric.PASS_AT_K)), PLAN, NONE),
    ],
)
def test_runs_that_say_nothing_of_a_task(runs: list[pd.DataFrame], plan: Plan, expected: BaselineTask) -> None:
    found = of(*runs, plan=plan).tasks
    assert {name: one.model_copy(update={"restart": None}) for name, one in found.items()} == {KEY: expected}


def test_a_change_of_the_task_leaves_the_other_runs_behind() -> None:
    changed = a_task(task_digest="another")
    plan = with_baseline(runs=1).model_copy(update={"tasks": (changed,)})
    found = entry(run(FIRST, "ppp", changed), run(SECOND, "fff"), plan=plan)
    assert (found.state, found.runs) == (GREEN, (FIRST,))


def test_without_rows_every_task_is_new_and_without_tasks_there_is_none() -> None:
    empty = arrow_schema().empty_table().to_pandas()
    assert pool_baseline(PLAN_ON_BASE, empty) == Baseline(branch="main", commit="b" * 40, tasks={KEY: NEW})
    assert of(*days("ppp"), plan=a_plan(run_id="20260201")).tasks == {}


OF_MODELS = (run(FIRST, "fff", model="old"), run(SECOND, "ppp", model="new"))


@pytest.mark.parametrize(
    ("models", "runs"),
    [
        (None, (SECOND, FIRST)),
        ({}, (SECOND, FIRST)),
        ({KEY: ()}, (SECOND, FIRST)),
        ({"golden/other": ("old",)}, (SECOND, FIRST)),
        ({KEY: ("new",)}, (SECOND,)),
        ({KEY: {"old"}}, (FIRST,)),
        ({KEY: ("old", "new")}, (SECOND, FIRST)),
    ],
)
def test_rows_of_other_models_do_not_count_where_those_of_the_run_are_known(models: Any, runs: tuple[str, ...]) -> None:
    found = entry(*OF_MODELS, models=models)
    assert (found.runs, found.n) == (runs, 3 * len(runs))


def test_a_task_known_only_of_other_models_has_no_baseline_but_keeps_its_admission() -> None:
    found = entry(*OF_MODELS, models={KEY: ("newer",)})
    assert found == NONE.model_copy(update={"newest": (True,) * 3 + (False,) * 3})
    # Nor do runs of other models take a place.
    assert entry(*OF_MODELS, plan=with_baseline(runs=1), models={KEY: ("old",)}).runs == (FIRST,)


@pytest.mark.parametrize("models", [("big",), ("small",), ("big, small",), ("huge, small",)])
def test_a_run_in_which_a_model_had_a_part_counts_whole(models: tuple[str, ...]) -> None:
    half = run(THIRD, "ppp").assign(model=["big, small", "big", ""])
    found = entry(*OF_MODELS, half, models={KEY: models})
    assert (found.runs, found.n, found.runs_green) == ((THIRD,), 3, 1)


def at(places: str) -> list[pd.DataFrame]:
    """Green runs of the days from 2026-01-01 on, each at `COMMIT@BRANCH`; with a `*` the files had changes."""
    told = [(place.rstrip("*").split("@"), place.endswith("*")) for place in places.split()]
    return [
        run(f"202601{day:02}", "ppp", commit=commit * 40, branch=branch, dirty=dirty)
        for day, ((commit, branch), dirty) in enumerate(told, 1)
    ]


@pytest.mark.parametrize(
    ("plan", "places", "branch", "commit", "counted"),
    [
        (PLAN_ON_BASE, "a@renamed b@ c@main @main", "main", "b" * 40, (SECOND, FIRST)),
        (PLAN, "a@main @feature @main2 @ @main*", "main", "", (FIRST,)),
        (with_baseline(branch="trunk"), "@trunk @main", "trunk", "", (FIRST,)),
    ],
)
def test_the_runs_of_base_or_branch_count(
    plan: Plan, places: str, branch: str, commit: str, counted: tuple[str, ...]
) -> None:
    found = of(*at(places), plan=plan)
    assert (found.branch, found.commit, found.pinned) == (branch, commit, False)
    assert found.tasks[KEY].runs == counted


@pytest.mark.parametrize(
    ("plan", "places", "commit", "counted"),
    [
        # Runs by their ids or what these begin with, wherever they come from
        (pinned(None, FIRST, "20260102", base=Base(commit="3" * 40)), "1@b1* 2@b2* 3@b3*", "3" * 40, (SECOND, FIRST)),
        (pinned(None, "2026010"), "1@b1* 2@b2*", "", (SECOND, FIRST)),
        (pinned(None, "202602"), "1@b1*", "", ()),
        # A commit, with the ancestors that the base holds
        (pinned("2" * 7, base=OF_ANCESTORS), "1@main 2@main 3@main 1@main*", "2" * 40, (SECOND, FIRST)),
        (pinned("2" * 7), "1@main 2@main 3@main 2@main*", "2" * 7, (SECOND,)),
    ],
)
def test_what_is_pinned_is_the_baseline(plan: Plan, places: str, commit: str, counted: tuple[str, ...]) -> None:
    found = of(*at(places), plan=plan)
    assert (found.commit, found.pinned, found.tasks[KEY].runs) == (commit, True, counted)
    assert counted or found.tasks[KEY] == NEW


def rates(*runs: pd.DataFrame, plan: Plan = PLAN) -> dict[str, ErrorRates]:
    rows = pd.concat(runs, ignore_index=True)[list(COLUMNS)]
    return dict(error_rates(pool_baseline(plan, rows), rows))


@pytest.mark.parametrize(
    ("runs", "errors"),
    [
        (days("ppp", "fee"), 2 / 6),
        (days("pfnee"), 0),  # A trial that was not run, and confirming ones
        ([*days("ppp"), run("20260202", "eee")], 0),  # A run that is not of the baseline
    ],
)
def test_errors_are_a_share_of_what_was_tried(runs: list[pd.DataFrame], errors: float) -> None:
    assert rates(*runs)[KEY] == ErrorRates(pytest.approx(errors), {})


def test_only_errors_are_no_measurement() -> None:
    other = a_task(task_id="other")
    plan = PLAN.model_copy(update={"tasks": (TASK, other)})
    assert rates(run(FIRST, "ppp"), run(FIRST, "eee", other), plan=plan)[other.name] == ErrorRates(1.0, {})


def test_violations_are_a_share_of_what_was_measured_once_a_trial() -> None:
    violations = pd.Series([["safety_violation: x", "forbidden_tool: x"] * 2, [], []])
    found = rates(run(FIRST, "fpe").assign(violations=violations), run(SECOND, "ppp"))[KEY]
    one_of_5 = pytest.approx(1 / 5)
    assert found.violations == {Rule.SAFETY_VIOLATION: one_of_5, Rule.FORBIDDEN_TOOL: one_of_5}
