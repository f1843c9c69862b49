"""A trial as a row of the history."""

import json

import pytest
from jsonschema import Draft202012Validator

from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, policy_digest, rows
from passgate.tasks.model.run import Revision
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import REPOSITORY, a_grade, a_plan, a_policy, a_task, a_trial, a_violation

SCHEMA = json.loads((REPOSITORY / "schema/trial.schema.json").read_text(encoding="utf-8"))
TASK = a_task()
PLAN = a_plan(TASK, revision=Revision(commit="c0ffee", branch="main", dirty=True))


@pytest.mark.parametrize("status", list(TrialStatus))
def test_a_row_is_what_the_schema_says(status: TrialStatus) -> None:
    trial = a_trial(
        TASK,
        2,
        status,
        grades=(a_grade(), a_grade(passed=False, violations=(a_violation(),)), a_grade(error="no judge")),
        metrics=TrialMetrics(tokens_in=1, cost=0.5, loop_rate=0.0),
    )
    (made,) = rows([trial], PLAN)
    Draft202012Validator(SCHEMA).validate(made | {"started_at": made["started_at"].isoformat()})
    assert made.keys() == SCHEMA["properties"].keys()
    assert set(PARTITIONS) <= set(made)


def test_a_row_says_where_it_comes_from_and_what_its_trial_goes_by() -> None:
    (made,) = rows([a_trial(TASK, 2)], PLAN.model_copy(update={"agent_digest": "a" * 64}))
    assert (made["schema_version"], made["run_id"]) == (SCHEMA_VERSION, PLAN.run_id)
    assert (made["gate"], made["day"]) == ("ci_merge", "2026-01-31")
    assert (made["git_commit"], made["git_branch"], made["git_dirty"]) == ("c0ffee", "main", True)
    assert (made["agent"], made["suite"], made["task_id"], made["trial"]) == ("cli:my-agent", "golden", "say-yes", 2)
    assert (made["metric"], made["status"], made["k"]) == ("pass^k", "passed", 3)
    assert (made["agent_digest"], made["policy_digest"]) == ("a" * 64, policy_digest(PLAN.policy))


def test_policies_that_differ_anywhere_have_other_digests() -> None:
    changed = a_policy(), a_policy(curtailment=not PLAN.gate_policy.curtailment), PLAN.policy.model_copy()
    first, second, third = map(policy_digest, changed)
    assert first == third == policy_digest(PLAN.policy) != second
    assert policy_digest(PLAN.policy.model_copy(update={"error_retries": 9})) != first


def test_the_rows_of_a_run_are_those_of_its_trials_of_which_those_beyond_k_are_confirming() -> None:
    trials = [a_trial(TASK, trial) for trial in (0, 2, 3, 9)]
    made = rows(trials, PLAN)
    assert [one["trial"] for one in made] == [0, 2, 3, 9]
    assert [one["confirming"] for one in made] == [False, False, True, True]
    assert rows([], PLAN) == []
