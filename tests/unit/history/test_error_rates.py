"""What went wrong in the runs of a baseline beside plain failures, and how much their times and costs vary."""

import pandas as pd
import pytest

from passgate.tasks.history.baseline import ERROR_RATE_COLUMNS, ErrorRates, baseline_of, error_rates_of
from passgate.tasks.history.columns import arrow_schema, rows
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision
from passgate.tasks.model.trial import Trial
from tests.builders import a_grade, a_plan, a_task, a_violation, trials_of

TASK = a_task()
PLAN = a_plan(TASK, run_id="now")


def history(**runs: list[Trial]) -> pd.DataFrame:
    made = [
        row
        for run_id, trials in runs.items()
        for row in rows(trials, a_plan(TASK, run_id=run_id, revision=Revision(branch="main")))
    ]
    return pd.DataFrame(made, columns=arrow_schema().names)[list(ERROR_RATE_COLUMNS)]


def troubles(**runs: list[Trial]) -> ErrorRates:
    found = history(**runs)
    return error_rates_of(baseline_of(PLAN, found), found)["golden/say-yes"]


def violating(trials: list[Trial], *rules: ViolationRule) -> list[Trial]:
    """The first of some trials violates these rules, each twice."""
    grade = a_grade(violations=tuple(a_violation(rule) for rule in rules for _ in range(2)))
    return [trials[0].model_copy(update={"grades": (grade,)}), *trials[1:]]


def test_errors_are_a_share_of_what_was_tried() -> None:
    found = troubles(a=trials_of(TASK, "ppp"), b=trials_of(TASK, "fee"))
    assert found == ErrorRates(pytest.approx(2 / 6), {})


def test_violations_are_a_share_of_what_was_measured_once_a_trial() -> None:
    both = (ViolationRule.SAFETY_VIOLATION, ViolationRule.FORBIDDEN_TOOL)
    found = troubles(a=violating(trials_of(TASK, "fpe"), *both), b=trials_of(TASK, "ppp"))
    assert found.violations == {
        Rule.SAFETY_VIOLATION: pytest.approx(1 / 5),
        Rule.FORBIDDEN_TOOL: pytest.approx(1 / 5),
    }


def test_confirming_trials_and_those_that_were_not_run_say_nothing() -> None:
    left_out = [trial.model_copy(update={"status": "not_run"}) for trial in trials_of(TASK, "--e")]
    assert troubles(a=[*trials_of(TASK, "pf"), *left_out, *trials_of(TASK, "---ee")]).errors == 0


def test_runs_that_are_not_of_the_baseline_say_nothing() -> None:
    later = {"now-later": trials_of(TASK, "eee")}
    assert troubles(a=[], first=trials_of(TASK, "ppp"), **later).errors == 0


def test_only_errors_are_no_measurement() -> None:
    task = a_task(task_id="other")
    plan = a_plan(TASK, task, run_id="now")
    found = history(first=[*trials_of(TASK, "ppp"), *trials_of(task, "eee")])
    assert error_rates_of(baseline_of(plan, found), found)["golden/other"] == ErrorRates(1.0, {})
