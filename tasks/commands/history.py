"""The stored runs of a history: which there are, and how two of them differ."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.history.dataset import refuse_foreign_rows
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.recorded_run import RecordedRun, RecordedRunDetails, RecordedTask, TaskDifference
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import single_models
from passgate.tasks.reports.findings import blocking, reason_subject

COLUMNS: Final = (
    *("run_id", "gate", "agent", "git_branch", "git_commit", "suite", "task_id", "passed", "failed", "errors"),
    *("total_cost", "value"),
)
"""The columns of the summaries that runs are listed from."""

_OF_DETAILS: Final = ("model", "git_dirty", "passgate_version")
DETAIL_COLUMNS: Final = tuple(dict.fromkeys((*COLUMNS, *_OF_DETAILS, *RecordedTask.model_fields)))
"""The columns of the summaries that one run is shown from."""


@refuse_foreign_rows()
def stored_runs(summaries: pa.Table) -> tuple[RecordedRun, ...]:
    """The runs of these summaries, the oldest first."""
    runs = summaries.group_by("run_id", use_threads=False).aggregate(
        [
            *((name, "first") for name in ("gate", "agent", "git_branch", "git_commit")),
            *((name, "sum") for name in ("passed", "failed", "errors", "total_cost")),
            ("task_id", "count"),
        ]
    )
    return tuple(
        RecordedRun(
            run_id=run["run_id"],
            gate=run["gate_first"],
            agent=run["agent_first"],
            git_branch=run["git_branch_first"] or "",
            git_commit=run["git_commit_first"] or "",
            tasks=run["task_id_count"],
            passed=run["passed_sum"],
            measured=run["passed_sum"] + run["failed_sum"],
            errors=run["errors_sum"],
            cost=run["total_cost_sum"],
        )
        for run in runs.sort_by("run_id").to_pylist()
    )


def with_verdict(run: RecordedRun) -> RecordedRun:
    """The run with its verdict, which the history has not: only the run's own folder does."""
    try:
        verdict = RunStore.of(run.run_id).read_verdict()
    except PassgateError:
        verdict = None
    if verdict is None:
        return run
    first, *more = blocking(verdict.reasons) or (None,)
    reason = "" if first is None else " ".join(filter(None, (str(first.rule), reason_subject(first))))
    return run.model_copy(
        update={"decision": verdict.decision, "reason": f"{reason}{f' +{len(more)}' if more else ''}"}
    )


def run_named(runs: Sequence[RecordedRun], name: str) -> RecordedRun:
    """The run of an id, of the only id that begins so, or the `last`. Raises `UsageError`."""
    if name == "last" and runs:
        return runs[-1]
    # Every id begins with an empty name, which a script gives by mistake.
    found = [run for run in runs if name and run.run_id.startswith(name)]
    exact = [run for run in found if run.run_id == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    what = f"{len(found)} runs whose ids begin with {name}" if found else f"no run {name!r}"
    raise UsageError(f"the history has {what}: `passgate history list` names them")


@refuse_foreign_rows()
def run_details(summaries: pa.Table, run: RecordedRun) -> RecordedRunDetails:
    """A run with its tasks, from summaries with `DETAIL_COLUMNS`."""
    rows = summaries.filter(pc.equal(summaries["run_id"], run.run_id))
    rows = rows.sort_by([("suite", "ascending"), ("task_id", "ascending")]).to_pylist()
    order = {suite: number for number, suite in enumerate(Suite)}
    tasks = [RecordedTask.model_validate({name: row[name] for name in RecordedTask.model_fields}) for row in rows]
    return RecordedRunDetails(
        run=run,
        models=tuple(sorted({name for row in rows for name in single_models(row["model"] or "")})),
        git_dirty=any(row["git_dirty"] for row in rows),
        passgate_version=rows[0]["passgate_version"] or "",
        tasks=tuple(sorted(tasks, key=lambda task: order[task.suite])),
    )


def run_before(runs: Sequence[RecordedRun], run: RecordedRun) -> RecordedRun:
    """The newest earlier run of the same gate and agent. Raises `UsageError`."""
    earlier = [one for one in runs if one.run_id < run.run_id and (one.gate, one.agent) == (run.gate, run.agent)]
    if not earlier:
        raise UsageError(f"the history has no run of {run.agent} at {run.gate} before {run.run_id}: name another one")
    return earlier[-1]


def task_differences(summaries: pa.Table, before: RecordedRun, after: RecordedRun) -> tuple[TaskDifference, ...]:
    """The tasks of two runs with what each run says of them, those that differ most first."""
    told = [_tasks_of(summaries, run) for run in (before, after)]
    names = sorted(told[0].keys() | told[1].keys())
    differences = [
        TaskDifference(suite=suite, task_id=task, before=told[0].get((suite, task)), after=told[1].get((suite, task)))
        for suite, task in names
    ]
    return tuple(sorted(differences, key=lambda one: -abs(one.change)))


def _tasks_of(summaries: pa.Table, run: RecordedRun) -> dict[tuple[str, str], tuple[int, int]]:
    rows = summaries.filter(pc.equal(summaries["run_id"], run.run_id)).to_pylist()
    return {(row["suite"], row["task_id"]): (row["passed"], row["passed"] + row["failed"]) for row in rows}
