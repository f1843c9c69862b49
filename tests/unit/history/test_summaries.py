"""A row per run and eval task beside the trials."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import StorageError
from passgate.tasks.history.columns import SUMMARY_VERSION, row, rows, summary_schema, table_of
from passgate.tasks.history.dataset import Days, History
from passgate.tasks.history.summaries import summarised
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import STARTED, a_grade, a_plan, a_task, a_trial, a_violation, measured, trials_of

TASK, ATTACK = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)
COLUMNS = ("run_id", "suite", "task_id", "day", "outcomes", "value")
DAY, LATER = "2026-01-31", "2026-02-01"
FILE = Path(f"summaries/{DAY}/run-1.parquet")


def made_of(task: EvalTask, statuses: str, **metrics: Any) -> dict[str, Any]:
    (only,) = summarised(table_of(rows(trials_of(task, statuses, **metrics), a_plan(task)))).to_pylist()
    return dict(only)


def write(history: History, run_id: str, statuses: str = "ppp", day: str = DAY) -> None:
    plan = a_plan(TASK, ATTACK, run_id=run_id)
    made = [one | {"day": day} for task in (TASK, ATTACK) for one in rows(trials_of(task, statuses), plan)]
    history.write_run(run_id, day, table_of(made), {})


def read(history: History, **how: Any) -> list[tuple[str, str, str]]:
    table = history.summaries(COLUMNS, **how).sort_by([("run_id", "ascending"), ("suite", "ascending")])
    return [(one["run_id"], one["suite"], one["outcomes"]) for one in table.to_pylist()]


@given(st.text("pfenl", min_size=1, max_size=6), st.sampled_from([Metric.PASS_HAT_K, Metric.PASS_AT_K]))
def test_a_summary_says_what_the_verdict_says(statuses: str, metric: Metric) -> None:
    task = a_task(metric=metric, k=len(statuses))
    made = made_of(task, statuses)
    (of_task,) = measured((task, trials_of(task, statuses))).tasks
    assert (made["passed"], made["failed"]) == (of_task.passed, of_task.n - of_task.passed)
    assert (made["errors"], made["not_run"]) == (of_task.errors, of_task.not_run)
    (of_suite,) = measured((task, trials_of(task, statuses))).suites
    assert made["value"] == of_suite.value
    assert made["outcomes"] == statuses.replace("l", "n")


def test_metrics_are_means_of_what_was_measured_and_costs_are_sums() -> None:
    trials = [
        a_trial(TASK, 1, metrics=TrialMetrics(cost=0.5, wall_time_seconds=3.0, steps=4), player_cost=0.25),
        a_trial(TASK, 0, metrics=TrialMetrics(cost=0.5, wall_time_seconds=1.0, steps=5)),
        a_trial(TASK, 2, TrialStatus.ERROR, unmeasured_cost=2.0, metrics=TrialMetrics(wall_time_seconds=60.0)),
        a_trial(TASK, 3, metrics=TrialMetrics(cost=1.0, wall_time_seconds=9.0)),
    ]
    (made,) = summarised(table_of(rows(trials, a_plan(TASK)))).to_pylist()
    assert (made["cost"], made["steps"], made["wall_times"]) == (0.5, 4.5, [1.0, 3.0])
    assert made["total_cost"] == 4.25
    assert (made["tool_call_accuracy"], made["confirming_passed"], made["outcomes"]) == (None, 1, "ppe")
    assert (made["started_at"], (made["ended_at"] - STARTED).total_seconds()) == (STARTED, 60)


def test_violations_models_and_confirming_trials_are_counted_and_the_unknown_is_null() -> None:
    bad = (a_grade(passed=False, violations=(a_violation(), a_violation())),)
    trials = [
        a_trial(TASK, 0, model="small, large"),
        a_trial(TASK, 1, TrialStatus.FAILED, grades=bad, model="large"),
        a_trial(TASK, 3, TrialStatus.FAILED, grades=bad),
    ]
    (made,) = summarised(table_of(rows(trials, a_plan(TASK)))).to_pylist()
    assert (made["violations"], made["model"], made["confirming_failed"]) == (2, "large, small", 1)
    assert (made["total_cost"], made["cost"], made["tokens_in"], made["wall_times"]) == (None, None, None, [])


def test_the_file_says_what_its_columns_mean_and_pandas_reads_it_without_us(local: History) -> None:
    write(local, "run-1")
    schema = pq.read_schema(FILE)
    assert schema.metadata[b"passgate"] == f"summary {SUMMARY_VERSION}".encode()
    assert all(field.metadata[b"description"] for field in schema)
    assert schema.names == summary_schema().names
    trials = pq.read_schema(f"trials/suite=golden/day={DAY}/run-1.parquet")
    assert b"US dollars" in trials.field("cost").metadata[b"description"]
    write(local, "run-2", day=LATER)
    assert len(pd.read_parquet("summaries")) == 4


def test_runs_without_a_summary_are_read_from_their_trials(local: History, caplog: pytest.LogCaptureFixture) -> None:
    write(local, "run-1", "ppf")
    write(local, "run-2", "fff", day=LATER)
    before = read(local)
    FILE.write_bytes(b"PAR1")
    assert read(local) == before
    assert "1 file is skipped: 2026-01-31/run-1.parquet" in caplog.text
    FILE.unlink()
    assert read(local) == before
    assert read(local, suite="golden") == [one for one in before if one[1] == "golden"]


def test_days_and_suites_are_narrowed(local: History) -> None:
    assert read(local) == []
    for day, run_id in ((DAY, "run-1"), (LATER, "run-2"), ("2026-03-01", "run-3")):
        write(local, run_id, day=day)
    all_days = Days(LATER, "2026-02-28"), Days(until=DAY), Days(since="2026-02-15")
    assert [{one[0] for one in read(local, days=days)} for days in all_days] == [{"run-2"}, {"run-1"}, {"run-3"}]
    assert {one[1] for one in read(local, suite="golden")} == {"golden"}


def test_summaries_of_a_newer_passgate_are_refused(local: History) -> None:
    write(local, "run-1")
    table = pq.ParquetFile(FILE).read()
    newer = table.set_column(0, table.schema.field(0), pa.array([SUMMARY_VERSION + 1] * len(table)))
    pq.write_table(newer, FILE)
    with pytest.raises(StorageError, match="written by a newer passgate"):
        read(local)


def test_a_summary_of_an_older_history_has_what_its_trials_had(local: History) -> None:
    """A file of schema version 1: no model, no score, no confirming trials."""
    local.write_run("run-1", DAY, table_of([row(a_trial(TASK), a_plan(TASK, run_id="run-1"))]), {})
    FILE.unlink()
    file = Path(f"trials/suite=golden/day={DAY}/run-1.parquet")
    later = ["model", "judge_cost", "score", "agent_digest", "policy_digest", "confirming"]
    pq.write_table(pq.ParquetFile(file).read().drop_columns([*later, "unmeasured_cost"]), file)
    assert read(local) == [("run-1", "golden", "p")]
