"""The stored runs of a history: which there are, what each says, how two of them differ, and which may be removed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.formats.loading import load_pins, policy_or_default
from passgate.tasks.history.dataset import History, RunSelection, refuse_foreign_rows
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.merge_base import pinned_ancestors, request_base
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.history import PrunedRuns, RecordedRun, RecordedRunDetails, RecordedTask, TaskDifference
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import single_models
from passgate.tasks.reports.findings import blocking, reason_subject
from passgate.tasks.stats.regression import ENOUGH

_TASK: Final = ["agent", "suite", "task_id"]
_VERSION: Final = ["task_digest", "grader_digest", "k", "metric"]
_COLUMNS: Final = ("run_id", *_TASK, *_VERSION, "model", "git_branch", "git_commit", "git_dirty")


@dataclass(frozen=True)
class BaselineNeeds:
    """Which runs baselines are made from."""

    runs: int  # The number for each task
    branch: str
    ancestors: Collection[str]  # The commits of the baseline branch
    pins: Pins | None
    pinned_ancestors: Collection[str]  # The pinned commit and its first-parent ancestors, if git knows them


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


def find_run_id(run_ids: Sequence[str], name: str) -> str:
    """Return the id that is this name, the only one that begins so, or the last one for `last`. Raises `UsageError`."""
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
    """Return a run, by its name as in `find_run_id`, with its tasks. Raises `UsageError`, `StorageError`."""
    summaries = _read_runs(history, find_run_id(history.run_ids(), name))
    rows = summaries.sort_by([("suite", "ascending"), ("task_id", "ascending")]).to_pylist()
    tasks = [RecordedTask.model_validate({name: row[name] for name in RecordedTask.model_fields}) for row in rows]
    return RecordedRunDetails(
        run=add_verdict(stored_runs(summaries)[0]),
        models=tuple(sorted({name for row in rows for name in single_models(row["model"] or "")})),
        git_dirty=any(row["git_dirty"] for row in rows),
        passgate_version=rows[0]["passgate_version"] or "",
        tasks=tuple(sorted(tasks, key=lambda task: [*Suite].index(task.suite))),
    )


def compare_runs(
    history: History, name: str, other: str | None
) -> tuple[RecordedRun, RecordedRun, tuple[TaskDifference, ...]]:
    """Return two runs, the older first, and how their tasks differ, most first. Raises `UsageError`, `StorageError`.

    Without another one, the run is compared with the newest earlier run of its gate and agent.
    """
    run_ids = history.run_ids()
    after = find_run_id(run_ids, name)
    if other is not None:
        before = find_run_id(run_ids, other)
    else:
        (run,) = stored_runs(_read_runs(history, after))
        earlier = stored_runs(history.summaries(RunSelection(before=after, gate=run.gate)))
        same = [one.run_id for one in earlier if one.agent == run.agent]
        if not same:
            raise UsageError(f"the history has no run of {run.agent} at {run.gate} before {after}: name another one")
        before = same[-1]
    summaries = _read_runs(history, before, after)
    runs = {run.run_id: run for run in stored_runs(summaries)}
    first, last = sorted((before, after))
    counts: dict[str, dict[tuple[str, str], tuple[int, int]]] = {first: {}, last: {}}
    for row in summaries.to_pylist():
        counts[row["run_id"]][row["suite"], row["task_id"]] = row["passed"], row["passed"] + row["failed"]
    differences = [
        TaskDifference(
            suite=suite, task_id=task, before=counts[first].get((suite, task)), after=counts[last].get((suite, task))
        )
        for suite, task in sorted(counts[first].keys() | counts[last].keys())
    ]
    return runs[first], runs[last], tuple(sorted(differences, key=lambda one: -abs(one.change)))


def _read_runs(history: History, *run_ids: str) -> pa.Table:
    """Return the summaries of these runs. Raises `UsageError` for one whose file is broken."""
    summaries = history.summaries(RunSelection(ids=run_ids))
    unread = set(run_ids).difference(summaries["run_id"].to_pylist())
    if unread:
        raise UsageError(f"the history {history.location} has no trials of {min(unread)} that can be read")
    return summaries


def baseline_needs(gates: Path, folder: Path) -> BaselineNeeds:
    """Return what the baselines of a gates file need. `folder` is in the repository. Raise as `load_pins` does."""
    policy, pins = policy_or_default(gates), load_pins(gates)
    with Checkout(folder) as checkout:
        policy = policy.into(checkout.baseline_branch)
        base = request_base(checkout, RunRequest(gates=str(gates)), policy)
    pinned = pinned_ancestors(pins, folder)
    return BaselineNeeds(policy.baseline.runs, policy.baseline.branch, base.ancestors, pins, pinned)


def prunable_runs(summaries: pa.Table, needs: BaselineNeeds, *, before: str | None = None, keep: int = 0) -> PrunedRuns:
    """Return which runs of before a day, or beyond the newest `keep` of each gate and agent, go, and which stay."""
    runs = stored_runs(summaries)
    if before is not None:
        chosen = {run.run_id for run in runs if run.run_id < before.replace("-", "")}
    else:
        groups: dict[tuple[str, str], list[str]] = {}
        for run in runs:
            groups.setdefault((run.gate, run.agent), []).append(run.run_id)
        chosen = {run_id for some in groups.values() for run_id in sorted(some, reverse=True)[keep:]}
    rows = _usable_rows(summaries)
    pinned = _pinned_runs(summaries, rows, needs)
    of_branch = rows[(rows["git_branch"] == needs.branch) | rows["git_commit"].isin(list(needs.ancestors))]
    needed = _pooled_runs(of_branch, needs.runs)
    some = [run for run in runs if run.run_id in chosen]
    gone = tuple(run for run in some if run.run_id not in pinned | needed)
    return PrunedRuns(
        gone=gone,
        pinned=tuple(run.run_id for run in some if run.run_id in pinned),
        needed=tuple(run.run_id for run in some if run.run_id in needed - pinned),
        left=len(runs) - len(gone),
    )


def _pinned_runs(summaries: pa.Table, rows: pd.DataFrame, needs: BaselineNeeds) -> set[str]:
    pins = needs.pins
    if pins is None:
        return set()
    if pins.runs:
        return {run for run in pc.unique(summaries["run_id"]).to_pylist() if run.startswith(pins.runs)}
    commits = rows["git_commit"].astype(str)
    is_pinned = commits.isin(list(needs.pinned_ancestors)) | commits.str.startswith(pins.commit or "-")
    return set(_newest_rows(rows[is_pinned], needs.runs)["run_id"])


def _pooled_runs(rows: pd.DataFrame, runs: int) -> set[str]:
    """Return the runs that a baseline pools, of these rows of its branch: for each task as it was last and each model
    the newest, and while these are too few trials to guard the task, also the newest from before its last edit.
    """
    last = rows.sort_values("run_id").drop_duplicates(_TASK, keep="last")[[*_TASK, *_VERSION]]
    rows = rows.merge(last.assign(is_last=True), how="left", on=[*_TASK, *_VERSION])
    newest = _newest_rows(rows[rows["is_last"].notna()], runs)
    alike = [*_TASK, "k", "metric"]
    trials = newest.groupby([*alike, "model"], dropna=False)["measured"].sum()
    young = trials[trials < ENOUGH].reset_index()[alike].drop_duplicates()
    earlier = rows[rows["is_last"].isna()].merge(young, on=alike)
    return {*newest["run_id"], *_newest_rows(earlier.assign(task_digest=""), runs)["run_id"]}


def _usable_rows(summaries: pa.Table) -> pd.DataFrame:
    """Return the rows that baselines may be made from: measured, and with exactly the files of their commit."""
    measured = pc.add(summaries["passed"], summaries["failed"])
    dirty = pc.fill_null(summaries["git_dirty"], fill_value=False)
    kept = summaries.select(list(_COLUMNS)).append_column("measured", measured)
    rows: pd.DataFrame = kept.filter(pc.and_(pc.greater(measured, 0), pc.invert(dirty))).to_pandas()
    return rows


def _newest_rows(rows: pd.DataFrame, runs: int) -> pd.DataFrame:
    """Return the rows of the newest runs of each version of a task with each model."""
    return rows.sort_values("run_id").groupby([*_TASK, *_VERSION, "model"], dropna=False, sort=False).tail(runs)
