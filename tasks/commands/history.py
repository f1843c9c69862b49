"""The stored runs of a history: which there are, what each says, and how two of them differ."""

from collections.abc import Sequence

import pyarrow as pa

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.history.dataset import History, RunSelection, refuse_foreign_rows
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.history import RecordedRun, RecordedRunDetails, RecordedTask, TaskDifference
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import single_models
from passgate.tasks.reports.findings import blocking, reason_subject


@refuse_foreign_rows()
def stored_runs(summaries: pa.Table) -> tuple[RecordedRun, ...]:
    """Return the runs of these summaries, the oldest first."""
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


def add_verdict(run: RecordedRun) -> RecordedRun:
    """Return the run with its verdict, which only the run's own folder has."""
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


def run_named(run_ids: Sequence[str], name: str) -> str:
    """Return the id that is this name, the only one that begins so, or the `last`. Raises `UsageError`."""
    if name == "last" and run_ids:
        return run_ids[-1]
    # Every id begins with an empty name, which a script gives by mistake.
    found = [run_id for run_id in run_ids if name and run_id.startswith(name)]
    if name in found or len(found) == 1:
        return name if name in found else found[0]
    what = f"{len(found)} runs whose ids begin with {name}" if found else f"no run {name!r}"
    raise UsageError(f"the history has {what}: `passgate history list` names them")


@refuse_foreign_rows()
def run_details(history: History, name: str) -> RecordedRunDetails:
    """Return a run, by a name that `run_named` accepts, with its tasks. Raises `UsageError`, `StorageError`."""
    summaries = _read_runs(history, run_named(history.run_ids(), name))
    rows = summaries.sort_by([("suite", "ascending"), ("task_id", "ascending")]).to_pylist()
    order = {suite: number for number, suite in enumerate(Suite)}
    tasks = [RecordedTask.model_validate({name: row[name] for name in RecordedTask.model_fields}) for row in rows]
    return RecordedRunDetails(
        run=add_verdict(stored_runs(summaries)[0]),
        models=tuple(sorted({name for row in rows for name in single_models(row["model"] or "")})),
        git_dirty=any(row["git_dirty"] for row in rows),
        passgate_version=rows[0]["passgate_version"] or "",
        tasks=tuple(sorted(tasks, key=lambda task: order[task.suite])),
    )


def compare_runs(
    history: History, name: str, other: str | None
) -> tuple[RecordedRun, RecordedRun, tuple[TaskDifference, ...]]:
    """Return two runs by their names, the older first, and how their tasks differ, those that differ most first.

    Without another one, the run is compared with the newest earlier run of its gate and agent. Raises `UsageError`,
    `StorageError`.
    """
    run_ids = history.run_ids()
    after = run_named(run_ids, name)
    before = _run_before(history, after) if other is None else run_named(run_ids, other)
    summaries = _read_runs(history, before, after)
    runs = {run.run_id: run for run in stored_runs(summaries)}
    first, last = (runs[run_id] for run_id in sorted((before, after)))
    return first, last, task_differences(summaries, first.run_id, last.run_id)


def task_differences(summaries: pa.Table, before: str, after: str) -> tuple[TaskDifference, ...]:
    """Return the tasks of two runs with what each run says of them, those that differ most first."""
    counts: dict[str, dict[tuple[str, str], tuple[int, int]]] = {before: {}, after: {}}
    for row in summaries.to_pylist():
        if row["run_id"] in counts:
            counts[row["run_id"]][row["suite"], row["task_id"]] = row["passed"], row["passed"] + row["failed"]
    differences = [
        TaskDifference(
            suite=suite, task_id=task, before=counts[before].get((suite, task)), after=counts[after].get((suite, task))
        )
        for suite, task in sorted(counts[before].keys() | counts[after].keys())
    ]
    return tuple(sorted(differences, key=lambda one: -abs(one.change)))


def _run_before(history: History, run_id: str) -> str:
    (run,) = stored_runs(_read_runs(history, run_id))
    earlier = stored_runs(history.summaries(RunSelection(before=run_id, gate=run.gate)))
    same = [one.run_id for one in earlier if one.agent == run.agent]
    if not same:
        raise UsageError(f"the history has no run of {run.agent} at {run.gate} before {run_id}: name another one")
    return same[-1]


def _read_runs(history: History, *run_ids: str) -> pa.Table:
    """Return the summaries of these runs. Raises `UsageError` for one whose file is broken."""
    summaries = history.summaries(RunSelection(ids=run_ids))
    unread = set(run_ids).difference(summaries["run_id"].to_pylist())
    if unread:
        raise UsageError(f"the history {history.location} has no trials of {min(unread)} that can be read")
    return summaries
