"""What guards a task that was edited: its runs before the edit, until its own are enough."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.history.columns import arrow_schema, row
from passgate.tasks.model.baseline import BaselineState, BaselineTask, Restart
from passgate.tasks.model.run import Plan, Revision
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision
from tests.builders import SAYS_YES, a_plan, a_policy, a_task, a_trial, measured, trials_of, write_task

BEFORE, EDITED, EDITED_AGAIN = a_task(), a_task(task_digest="edited"), a_task(task_digest="edited again")
REGRADED = a_task(task_digest="edited", grader_digest="others")
OTHER = a_task(task_id="other", file="suites/golden/other.yaml")
POLICY = a_policy(
    suites=["golden"],
    blocks_on=["golden_regression", "task_failed"],
    regression={"mode": "evidence"},
    admission={"passes": 17, "of": 20},
)


def plan_of(*tasks: EvalTask) -> Plan:
    return a_plan(*tasks, run_id="20260201T000000Z-now", policy=POLICY)


def runs(task: EvalTask, *statuses: str, day: int = 1, model: str = "m") -> pd.DataFrame:
    """The rows of runs on main, the oldest first."""
    rows: list[dict[str, Any]] = []
    for number, letters in enumerate(statuses, day):
        plan = a_plan(task, run_id=f"202601{number:02}", revision=Revision(branch="main"))
        rows += [row(one.model_copy(update={"model": model}), plan) for one in trials_of(task, letters)]
    return pd.DataFrame(rows, columns=arrow_schema().names)[list(COLUMNS)]


def entry(task: EvalTask, *rows: pd.DataFrame, models: Any = None) -> BaselineTask:
    return baseline_of(plan_of(task), pd.concat(rows, ignore_index=True), models).tasks[task.name]


THIRTY = ("ppp",) * 10


BEFORE_EDIT = runs(BEFORE, *THIRTY)


@pytest.mark.parametrize(
    ("task", "rows", "counted", "restart"),
    [
        (EDITED, [BEFORE_EDIT], (BaselineState.GREEN, 30, 30, 30), None),
        (EDITED, [BEFORE_EDIT, runs(EDITED, "ppp", "ppf", day=20)], (BaselineState.GREEN, 35, 36, 30), None),
        (EDITED, [BEFORE_EDIT, runs(EDITED, *("ppp",) * 7, day=20)], (BaselineState.GREEN, 21, 21, 0), None),
        (EDITED, [runs(BEFORE, *("ppp",) * 6)], (BaselineState.NONE, 0, 0, 0), None),  # Too few guard nothing
        (EDITED_AGAIN, [BEFORE_EDIT, runs(EDITED, "ppp", "ppp", day=20)], (BaselineState.GREEN, 36, 36, 36), None),
        (a_task(grader_digest="others"), [BEFORE_EDIT], (BaselineState.NONE, 0, 0, 0), Restart.GRADERS),
        (a_task(k=4), [BEFORE_EDIT], (BaselineState.NONE, 0, 0, 0), Restart.GRADERS),
        (a_task(metric=Metric.PASS_AT_K), [BEFORE_EDIT], (BaselineState.NONE, 0, 0, 0), Restart.GRADERS),
        (EDITED, [BEFORE_EDIT.assign(grader_digest=None)], (BaselineState.NONE, 0, 0, 0), Restart.GRADERS),
        # The edit has made it harder, or the agent is broken there: no later change is to blame.
        (EDITED, [BEFORE_EDIT, runs(EDITED, "fff", day=20)], (BaselineState.RED, 0, 3, 0), Restart.WORSE),
    ],
)
def test_the_runs_before_an_edit_count_until_its_own_are_enough(
    task: EvalTask, rows: list[pd.DataFrame], counted: tuple[BaselineState, int, int, int], restart: Restart | None
) -> None:
    found = entry(task, *rows)
    assert (found.state, found.passed, found.n, found.before_edit) == counted
    assert found.restart is restart


def test_only_trials_of_its_own_admit_it() -> None:
    found = entry(EDITED, BEFORE_EDIT, runs(EDITED, "ppp", "ppf", day=20))
    assert found.newest == (False, True, True, True, True, True)


def test_runs_of_other_models_before_an_edit_do_not_count() -> None:
    rows = BEFORE_EDIT, runs(EDITED, "ppp", day=20, model="new")
    found = entry(EDITED, *rows, models={EDITED.name: ("new",)})
    assert (found.n, found.before_edit) == (3, 0)


def ruling(task: EvalTask, *rows: pd.DataFrame, failing: str = "fff" + "f" * 6) -> Ruling:
    """The gate on a broken agent, beside another task that is admitted."""
    plan = plan_of(task, OTHER)
    baseline = baseline_of(plan, pd.concat([*rows, runs(OTHER, *THIRTY)], ignore_index=True))
    confirming = [a_trial(task, number, TrialStatus.FAILED) for number in range(3, len(failing))]
    groups = (task, [*trials_of(task, failing[:3]), *confirming]), (OTHER, trials_of(OTHER, "ppp"))
    return rule_on(plan, plan.gate_policy, measured(*groups), baseline)


def test_an_agent_that_breaks_after_an_edit_fails() -> None:
    found = ruling(EDITED, BEFORE_EDIT)
    assert found.decision is Decision.FAIL
    (reason,) = (one for one in found.reasons if one.blocking)
    assert "judged against its version before the edit (30 trials)" in reason.message
    assert "golden/say-yes is judged against its version before the edit, 30 trials" in found.notes
    assert [one.before_edit for one in found.confirmations] == [30]
    assert found.not_admitted[0].why == (
        "not admitted yet: no trial was measured on main, 17 of 20 are required; it blocks if it falls below its "
        "own rate before its edit"
    )


@pytest.mark.parametrize(
    ("task", "own", "why"),
    [
        (REGRADED, (), "17 of 20 are required; its graders, its k or its metric are not those of its earlier runs"),
        (EDITED, ("fff",), "since its edit it passes less often at the baseline"),
    ],
)
def test_with_other_graders_or_after_it_has_failed_on_the_branch_it_has_to_be_admitted_again(
    task: EvalTask, own: tuple[str, ...], why: str
) -> None:
    found = ruling(task, BEFORE_EDIT, runs(task, *own, day=20), failing="fff")
    assert found.decision is Decision.PASS
    assert why in found.not_admitted[0].why


def test_no_more_than_ten_edited_tasks_are_named() -> None:
    tasks = [a_task(task_id=f"t{number}") for number in range(12)]
    now = [a_task(task_id=task.task_id, task_digest="edited") for task in tasks]
    plan = plan_of(*now)
    baseline = baseline_of(plan, pd.concat([runs(task, *THIRTY) for task in tasks], ignore_index=True))
    measurement = measured(*((task, trials_of(task, "ppp")) for task in now))
    notes = rule_on(plan, plan.gate_policy, measurement, baseline).notes
    assert sum("before the edit" in note for note in notes) == 10
    assert "so are 2 more tasks" in notes


@pytest.mark.parametrize(
    ("edit", "is_guarded"),
    [
        ({"inputs": {"prompt": "Please say yes."}}, True),
        ({"environment": {"budgets": {"max_steps": 19}}}, True),
        ({"graders": [SAYS_YES | {"ignore_case": True}]}, False),
    ],
)
def test_the_edit_of_a_file_is_told_by_its_digests(tmp_path: Path, edit: dict[str, Any], is_guarded: bool) -> None:
    def loaded(**changes: Any) -> EvalTask:
        write_task(tmp_path / "suites/golden/say-yes.yaml", **changes)
        return load_tasks(tmp_path / "suites", POLICY)[0]

    before, edited = loaded(), loaded(**edit)
    assert before.task_digest + before.grader_digest != edited.task_digest + edited.grader_digest
    assert (entry(edited, runs(before, *("p" * before.k,) * 10)).before_edit > 0) is is_guarded
