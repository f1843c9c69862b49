"""Reuse the trials of earlier runs for tasks that have not changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from passgate.tasks.history.baseline import task_state
from passgate.tasks.history.columns import policy_digest
from passgate.tasks.history.dataset import History, RunSelection, refuse_foreign_rows
from passgate.tasks.model.grade import Grade, Violation, ViolationRule
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import MEASURED, FinishedTrial, Trial, TrialMetrics, TrialStatus

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("run_id", "suite", "task_id", "task_digest", "grader_digest", "k", "metric", "trial", "status", "score"),
    *("reason", "violations", "grades", "attempts", "isolation", "started_at", "transcript_digest", "model"),
    *TrialMetrics.model_fields,
)  # From which trials are rebuilt

_Row = Mapping[Any, Any]


@refuse_foreign_rows()
def reusable_trials(plan: Plan) -> list[FinishedTrial]:
    """Return the trials of earlier runs that replace trials of the plan, without transcripts, if the policy allows it.

    For each task, take the newest run that measured it with the same gate, policy, agent, agent's files, task, graders
    and passgate, if that run decided the task without errors and is not too old. A failed task is no exception,
    otherwise it would run again until it passes. Confirming trials are included.

    Raise `UsageError`, `StorageError`.
    """
    if plan.gate_policy.reuse is None or not plan.agent_digest:
        return []
    wanted = {
        "gate": str(plan.gate),
        "agent": str(plan.agent),
        "agent_digest": plan.agent_digest,
        "policy_digest": policy_digest(plan.policy),
        "passgate_version": plan.passgate_version,
    }
    # `load` refuses a history that git tracks.
    where = reduce(and_, (ds.field(column) == value for column, value in wanted.items()))
    runs = RunSelection(before=plan.run_id, gate=plan.gate)
    earlier = History(plan.history_location).trials(COLUMNS, where, runs).to_pandas()
    groups = dict(iter(earlier.groupby("task_id"))) if len(earlier) else {}
    known = [(task, groups[task.task_id]) for task in plan.tasks if task.task_id in groups]
    return [trial for task, rows in known for trial in _task_trials(plan, task, rows)]


def _task_trials(plan: Plan, task: EvalTask, trials: "pd.DataFrame") -> Iterator[FinishedTrial]:
    same = trials[
        (trials["suite"] == str(task.suite))
        & (trials["task_digest"] == task.task_digest)
        & (trials["grader_digest"] == task.grader_digest)
        & (trials["k"] == task.k)
        & (trials["metric"] == str(task.metric))
    ]
    is_measured = same["status"].isin([str(status) for status in MEASURED])
    if not is_measured.any():
        return
    newest = same["run_id"] == same["run_id"][is_measured].max()
    is_broken = (same["status"] == str(TrialStatus.ERROR)) & (same["trial"] < task.k)
    rows: list[_Row] = same[newest & is_measured].sort_values("trial").to_dict("records")
    if not (newest & is_broken).any() and _is_valid(plan, task, rows):
        yield from (FinishedTrial(trial=_trial(task, row), transcript=Transcript()) for row in rows)


def _is_valid(plan: Plan, task: EvalTask, rows: Sequence[_Row]) -> bool:
    """Return whether the measured trials of a run are young enough and decide the task."""
    reuse = plan.gate_policy.reuse
    first = [row for row in rows if row["trial"] < task.k]
    if reuse is None or not first:
        return False
    age = plan.created_at - min(row["started_at"] for row in first)
    return age <= timedelta(days=reuse.max_age_days) and (len(first) == task.k or _stopped_early(plan, task, first))


def _stopped_early(plan: Plan, task: EvalTask, first: Sequence[_Row]) -> bool:
    """Return whether trials are missing because the measured ones decide, whatever the others would be."""
    if not plan.gate_policy.curtailment:
        return False
    outcomes = ((row["status"], row["score"]) for row in first)
    state = task_state(task.metric, task.k, task.scoring.threshold, outcomes)
    return state is not TaskState.UNDECIDED


def _trial(task: EvalTask, row: _Row) -> Trial:
    return stored_trial(
        task,
        row,
        reason=row["reason"],
        grades=tuple(_grades(row)),
        metrics=TrialMetrics(**{name: _value(row[name]) for name in TrialMetrics.model_fields}),
        model=row["model"],
        attempts=row["attempts"],
        isolation=row["isolation"],
        started_at=row["started_at"].to_pydatetime(),
        transcript_digest=row["transcript_digest"],
    )


def stored_trial(task: EvalTask, row: _Row, **others: Any) -> Trial:
    """Return the trial of an earlier run of a task from a row of the history."""
    return Trial(
        suite=task.suite,
        task_id=task.task_id,
        trial=row["trial"],
        k=row["k"],
        metric=task.metric,
        status=TrialStatus(row["status"]),
        score=_value(row["score"]),
        reused_from=row["run_id"],
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        file=task.file,
        line=task.line,
        **others,
    )


def _grades(row: _Row) -> Iterator[Grade]:
    """Yield the stored grades, which have no checks, and the violations as one more grade."""
    for grade in row["grades"]:
        yield Grade(
            name=grade["name"],
            type=grade["type"],
            score=_value(grade["score"]),
            passed=grade["passed"],
            error=grade["error"] or None,
            votes=tuple(grade["votes"]),
        )
    yield from violation_grades(row["violations"])


def violation_grades(texts: Iterable[str]) -> tuple[Grade, ...]:
    """Return the violations of a trial, as the history stores them, in a grade; no grade if there are none."""
    split = [text.partition(": ") for text in texts]
    found = tuple(Violation(rule=ViolationRule(rule), message=message) for rule, _, message in split)
    return (Grade(name="violations", type="earlier_run", score=0.0, passed=False, violations=found),) if found else ()


def _value(value: Any) -> Any:
    """Return a value of a row; `None` for `NaN`, which pandas has for a missing number."""
    return value if value == value else None
