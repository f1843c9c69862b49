"""Which earlier run speaks for a task."""

from typing import Any

import pandas as pd
import pytest
from tests.builders import a_plan, a_policy, a_task, trials_of

from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.history.columns import arrow_schema, row
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.measurement import Baseline, BaselineTask, TaskState
from passgate.tasks.model.run import Revision
from passgate.tasks.model.task import EvalTask, Metric

TASK = a_task()
PLAN = a_plan(TASK, run_id="20260201T000000Z-now")
KEY = "golden/say-yes"


def run(run_id: str, statuses: str, task: EvalTask = TASK, *, branch: str = "main", **metrics: Any) -> pd.DataFrame:
    """The rows of an earlier run; `agent` and other columns can be changed in what comes back."""
    plan = a_plan(task, run_id=run_id, revision=Revision(branch=branch))
    rows = [row(trial, plan) for trial in trials_of(task, statuses, **metrics)]
    return pd.DataFrame(rows, columns=arrow_schema().names)


def of(*runs: pd.DataFrame, plan: Any = PLAN) -> Baseline:
    return baseline_of(plan, pd.concat(runs, ignore_index=True)[list(COLUMNS)])


def test_the_newest_run_speaks() -> None:
    baseline = of(run("20260102", "fff"), run("20260103", "ppp"), run("20260101", "ppf"))
    assert baseline.branch == "main"
    assert baseline.tasks == {KEY: BaselineTask(run_id="20260103", state=TaskState.PASSED, passed=3, n=3)}


def test_a_red_run_speaks_too() -> None:
    baseline = of(run("20260102", "ppf"), run("20260101", "ppp"))
    assert (baseline.tasks[KEY].state, baseline.tasks[KEY].passed, baseline.tasks[KEY].n) == (TaskState.FAILED, 2, 3)


def test_a_run_that_did_not_decide_the_task_is_passed_over() -> None:
    assert of(run("20260102", "ppe"), run("20260101", "ppp")).tasks[KEY].run_id == "20260101"
    assert of(run("20260102", "fee"), run("20260101", "ppp")).tasks[KEY].run_id == "20260102"


def test_what_a_run_took_and_cost_comes_with_it() -> None:
    entry = of(run("20260101", "ppp", wall_time_seconds=1.5, cost=0.25)).tasks[KEY]
    assert entry.wall_times == (1.5, 1.5, 1.5)
    assert entry.costs == (0.25, 0.25, 0.25)


def test_only_runs_before_this_one_count() -> None:
    assert of(run("20260201T000000Z-now", "ppp"), run("20260202", "ppp")).tasks == {}


@pytest.mark.parametrize("branch", ["feature", "", "main2"])
def test_only_runs_of_the_branch_count(branch: str) -> None:
    assert of(run("20260101", "ppp", branch=branch)).tasks == {}


def test_the_branch_is_the_policys() -> None:
    policy = a_policy().model_copy(update={"baseline": a_policy().baseline.model_copy(update={"branch": "trunk"})})
    plan = PLAN.model_copy(update={"policy": policy})
    baseline = of(run("20260101", "ppp", branch="trunk"), run("20260102", "ppp"), plan=plan)
    assert (baseline.branch, baseline.tasks[KEY].run_id) == ("trunk", "20260101")


def test_only_runs_of_the_same_agent_count() -> None:
    other = PLAN.model_copy(update={"agent": AgentSpec(kind=AgentKind.CLI, target="my-agent --fast")})
    assert of(run("20260101", "ppp"), plan=other).tasks == {}


@pytest.mark.parametrize(
    "change",
    [
        {"task_digest": "another"},
        {"grader_digest": "another"},
        {"k": 4},
        {"metric": Metric.PASS_AT_K},
        {"task_id": "another"},
    ],
)
def test_only_runs_of_the_same_task_count(change: dict[str, Any]) -> None:
    assert of(run("20260101", "ppp", a_task(**change))).tasks == {}


def test_a_change_of_the_task_leaves_the_older_runs_behind() -> None:
    changed = a_task(task_digest="another")
    runs = run("20260101", "ppp", changed), run("20260102", "fff")
    assert of(*runs, plan=a_plan(changed, run_id="20260201")).tasks[KEY].run_id == "20260101"


def test_every_task_has_its_own_newest_run() -> None:
    other = a_task(task_id="other")
    plan = a_plan(TASK, other, a_task(task_id="new"), run_id="20260201")
    baseline = of(run("20260101", "ppp"), run("20260102", "fff", other), plan=plan)
    assert {name: entry.run_id for name, entry in baseline.tasks.items()} == {
        KEY: "20260101",
        "golden/other": "20260102",
    }


def test_an_empty_history_has_no_baseline() -> None:
    assert baseline_of(PLAN, arrow_schema().empty_table().to_pandas()) == Baseline(branch="main")


def test_one_pass_decides_where_one_is_enough() -> None:
    task = a_task(metric=Metric.PASS_AT_K)
    entry = of(run("20260101", "pee", task), plan=a_plan(task, run_id="20260201")).tasks[KEY]
    assert (entry.state, entry.passed, entry.n) == (TaskState.PASSED, 1, 1)
