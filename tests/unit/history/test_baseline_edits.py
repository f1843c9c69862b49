"""What guards a task that was edited: its runs before the edit, until its own are enough."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.model.baseline import BaselineState, Restart
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Decision
from tests.builders import SAYS_YES, a_plan, a_policy, a_task, a_trial, measured, trials_of, write_task
from tests.unit.history.test_baseline import days, entry, of

BEFORE, EDITED, EDITED_AGAIN = a_task(), a_task(task_digest="edited"), a_task(task_digest="edited again")
REGRADED = a_task(task_digest="edited", grader_digest="others")
OTHER = a_task(task_id="other", file="suites/golden/other.yaml")
POLICY = a_policy(
    suites=["golden"],
    blocks_on=["golden_regression", "task_failed"],
    regression={"mode": "evidence"},
    admission={"passes": 17, "of": 20},
)
NONE = (BaselineState.NONE, 0, 0, 0)


def plan_of(*tasks: EvalTask) -> Plan:
    return a_plan(*tasks, run_id="20260201T000000Z-now", policy=POLICY)


def thirty(task: EvalTask) -> list[pd.DataFrame]:
    """Ten green runs of a task, of three trials each."""
    return days(*("p" * task.k,) * 10, task=task)


def of_edit(*statuses: str, task: EvalTask = EDITED, model: str = "m") -> list[pd.DataFrame]:
    """Runs after the edit."""
    return days(*statuses, task=task, first=20, model=model)


BEFORE_EDIT = thirty(BEFORE)


@pytest.mark.parametrize(
    ("task", "rows", "counted", "restart"),
    [
        (EDITED, BEFORE_EDIT, (BaselineState.GREEN, 30, 30, 30), None),
        (EDITED, [*BEFORE_EDIT, *of_edit("ppp", "ppf")], (BaselineState.GREEN, 35, 36, 30), None),
        (EDITED, [*BEFORE_EDIT, *of_edit(*("ppp",) * 7)], (BaselineState.GREEN, 21, 21, 0), None),
        (EDITED, BEFORE_EDIT[:6], NONE, None),  # Too few guard nothing
        (EDITED_AGAIN, [*BEFORE_EDIT, *of_edit("ppp", "ppp")], (BaselineState.GREEN, 36, 36, 36), None),
        (a_task(grader_digest="others"), BEFORE_EDIT, NONE, Restart.GRADERS),
        (a_task(k=4), BEFORE_EDIT, NONE, Restart.GRADERS),
        (a_task(metric=Metric.PASS_AT_K), BEFORE_EDIT, NONE, Restart.GRADERS),
        (EDITED, [rows.assign(grader_digest=None) for rows in BEFORE_EDIT], NONE, Restart.GRADERS),
        # The edit has made it harder, or the agent is broken there: no later change is to blame.
        (EDITED, [*BEFORE_EDIT, *of_edit("fff")], (BaselineState.RED, 0, 3, 0), Restart.WORSE),
    ],
)
def test_the_runs_before_an_edit_count_until_its_own_are_enough(
    task: EvalTask, rows: list[pd.DataFrame], counted: tuple[BaselineState, int, int, int], restart: Restart | None
) -> None:
    found = of(*rows, plan=plan_of(task)).tasks[task.name]
    assert (found.state, found.passed, found.n, found.before_edit) == counted
    assert found.restart is restart


def test_only_trials_of_its_own_admit_it_and_those_of_other_models_before_the_edit_do_not_count() -> None:
    found = entry(*BEFORE_EDIT, *of_edit("ppp", "ppf"), plan=plan_of(EDITED))
    assert found.newest == (False, True, True, True, True, True)
    of_new = of_edit("ppp", model="new")
    found = entry(*BEFORE_EDIT, *of_new, plan=plan_of(EDITED), models={EDITED.name: ("new",)})
    assert (found.n, found.before_edit) == (3, 0)


def ruling(task: EvalTask, *rows: pd.DataFrame, failing: str = "fff" + "f" * 6) -> Ruling:
    """The gate on a broken agent, beside another task that is admitted."""
    plan = plan_of(task, OTHER)
    baseline = of(*rows, *thirty(OTHER), plan=plan)
    confirming = [a_trial(task, number, TrialStatus.FAILED) for number in range(3, len(failing))]
    groups = (task, [*trials_of(task, failing[:3]), *confirming]), (OTHER, trials_of(OTHER, "ppp"))
    return rule_on(plan, plan.gate_policy, measured(*groups), baseline)


def test_an_agent_that_breaks_after_an_edit_fails() -> None:
    found = ruling(EDITED, *BEFORE_EDIT)
    assert found.decision is Decision.FAIL
    (reason,) = (one for one in found.reasons if one.blocking)
    assert "judged against its version before the edit (30 trials)" in reason.message
    assert "golden/say-yes is judged against its version before the edit, 30 trials" in found.notes
    assert [one.before_edit for one in found.confirmations] == [30]
    assert found.not_admitted[0].why == (
        "not admitted yet: no trial was measured on main, 17 of 20 are required; it blocks if it falls below its "
        "own rate before its edit"
    )


@pytest.mark.parametrize("digest", ["graders-two", "the same as before the edit"])
def test_once_its_own_run_was_green_other_graders_disarm_nothing(digest: str) -> None:
    task = REGRADED.model_copy(update={"task_digest": digest})
    found = ruling(task, *BEFORE_EDIT, *of_edit("ppp", task=task))
    assert found.decision is Decision.FAIL
    assert [(one.before_edit, one.baseline_n) for one in found.confirmations] == [(30, 33)]


@pytest.mark.parametrize(
    ("task", "own", "why"),
    [
        (REGRADED, (), "17 of 20 are required; its graders, its k or its metric are not those of its earlier runs"),
        (EDITED, ("fff",), "since its edit it passes less often at the baseline"),
    ],
)
def test_a_task_that_is_another_one_has_to_be_admitted_again(task: EvalTask, own: tuple[str, ...], why: str) -> None:
    found = ruling(task, *BEFORE_EDIT, *of_edit(*own, task=task), failing="fff")
    assert found.decision is Decision.PASS
    assert why in found.not_admitted[0].why


def test_no_more_than_ten_edited_tasks_are_named() -> None:
    tasks = [a_task(task_id=f"t{number}") for number in range(12)]
    now = [a_task(task_id=task.task_id, task_digest="edited") for task in tasks]
    plan = plan_of(*now)
    baseline = of(*(rows for task in tasks for rows in thirty(task)), plan=plan)
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
    assert (entry(*thirty(before), plan=plan_of(edited)).before_edit > 0) is is_guarded
