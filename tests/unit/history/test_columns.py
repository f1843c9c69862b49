"""A trial as a row of the history."""

import json

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator
from tests.builders import REPOSITORY, a_grade, a_plan, a_task, a_trial, a_violation

from passgate.tasks.history.columns import PARTITIONS, SCHEMA_VERSION, arrow_schema, row
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.run import Revision
from passgate.tasks.model.trial import TrialStatus

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
    assert list(made) == list(SCHEMA["properties"])
    assert set(PARTITIONS) <= set(made)


def test_a_row_says_where_it_comes_from() -> None:
    made = row(a_trial(TASK, 2), PLAN)
    assert made["schema_version"] == SCHEMA_VERSION
    assert (made["run_id"], made["gate"], made["day"]) == (PLAN.run_id, "ci_merge", "2026-01-31")
    assert (made["git_commit"], made["git_branch"], made["git_dirty"]) == ("c0ffee", "main", True)
    assert (made["agent"], made["suite"], made["task_id"], made["trial"]) == ("cli:my-agent", "golden", "say-yes", 2)
    assert (made["metric"], made["status"], made["k"]) == ("pass^k", "passed", 3)


def test_the_types_for_arrow() -> None:
    schema = arrow_schema()
    assert schema.field("trial").type == pa.int64()
    assert schema.field("cost").type == pa.float64()
    assert schema.field("started_at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("violations").type == pa.list_(pa.string())
    assert schema.field("grades").type.value_type.field("score").type == pa.float64()


def test_rows_fit_the_types() -> None:
    made = row(a_trial(TASK, grades=(a_grade(),)), PLAN)
    assert pa.Table.from_pylist([made], schema=arrow_schema()).num_rows == 1
