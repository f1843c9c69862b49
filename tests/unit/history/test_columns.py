"""A trial as a row of the history."""

import json

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, arrow_schema, policy_digest, row, rows
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
    made = row(trial, PLAN)
    Draft202012Validator(SCHEMA).validate(made | {"started_at": made["started_at"].isoformat()})
    assert made.keys() == SCHEMA["properties"].keys()
    assert set(PARTITIONS) <= set(made)


def test_a_row_says_where_it_comes_from() -> None:
    made = row(a_trial(TASK, 2), PLAN)
    assert made["schema_version"] == SCHEMA_VERSION
    assert (made["run_id"], made["gate"], made["day"]) == (PLAN.run_id, "ci_merge", "2026-01-31")
    assert (made["git_commit"], made["git_branch"], made["git_dirty"]) == ("c0ffee", "main", True)
    assert (made["agent"], made["suite"], made["task_id"], made["trial"]) == ("cli:my-agent", "golden", "say-yes", 2)
    assert (made["metric"], made["status"], made["k"]) == ("pass^k", "passed", 3)


def test_a_row_says_what_its_trial_goes_by() -> None:
    made = row(a_trial(TASK), a_plan(TASK, agent_digest="a" * 64))
    assert (made["agent_digest"], made["policy_digest"]) == ("a" * 64, policy_digest(PLAN.policy))


def test_policies_that_differ_anywhere_have_other_digests() -> None:
    changed = a_policy(), a_policy(curtailment=not PLAN.gate_policy.curtailment), PLAN.policy.model_copy()
    first, second, third = map(policy_digest, changed)
    assert first == third == policy_digest(PLAN.policy) != second
    assert policy_digest(PLAN.policy.model_copy(update={"error_retries": 9})) != first


@pytest.mark.parametrize(("trial", "confirming"), [(0, False), (2, False), (3, True), (9, True)])
def test_trials_beyond_k_are_confirming(trial: int, confirming: bool) -> None:
    assert TASK.k == 3
    assert row(a_trial(TASK, trial), PLAN)["confirming"] is confirming


def test_the_rows_of_a_run_are_those_of_its_trials() -> None:
    trials = [a_trial(TASK, trial) for trial in range(3)]
    assert rows(trials, PLAN) == [row(trial, PLAN) for trial in trials]
    assert rows([], PLAN) == []


def test_the_types_for_arrow() -> None:
    schema = arrow_schema()
    assert schema.field("confirming").type == pa.bool_()
    assert schema.field("trial").type == pa.int64()
    assert schema.field("cost").type == pa.float64()
    assert schema.field("started_at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("violations").type == pa.list_(pa.string())
    assert schema.field("grades").type.value_type.field("score").type == pa.float64()


def test_rows_fit_the_types() -> None:
    made = row(a_trial(TASK, grades=(a_grade(),)), PLAN)
    assert pa.Table.from_pylist([made], schema=arrow_schema()).num_rows == 1
