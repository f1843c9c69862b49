"""The baseline of a plan: what the earlier runs in its history say of its tasks."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from passgate.tasks.history.baseline import COLUMNS, is_of_baseline, measured_rows, pool_baseline, task_state
from passgate.tasks.history.columns import rows
from passgate.tasks.history.dataset import MOST_RUNS, History, RunSelection, refuse_foreign_rows
from passgate.tasks.model.baseline import Baseline, Repeat
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.run import Base, Plan, Revision, RunContext
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.planning.reuse import stored_trial, violation_grades

Pool = Callable[[Sequence[Trial]], Baseline]
"""What earlier runs say of a plan's tasks, in the light of its trials so far."""
_RECENT_RUNS: Final = 20  # Of each task


@dataclass(frozen=True)
class EarlierRuns:
    """The rows of a history that are of the tasks of a plan."""

    trials: pd.DataFrame
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Of tasks that had another name in some of these rows, that name."""
    repeats: tuple[Repeat, ...] = ()
    """Earlier runs of the commit that is run, the oldest first."""


def read_rows(plan: Plan) -> EarlierRuns:
    """Read what the plan's history has of its agent. The caller knows that git does not track the history.

    Raises `StorageError`.
    """
    return read_earlier_runs(plan, History(plan.history_location), str(plan.agent))


def read_earlier_runs(plan: RunContext, history: History, agent: str | None = None) -> EarlierRuns:
    """Read the newest earlier runs of the plan's tasks from a history. With `agent` only its rows are read.

    Older runs are read too until there are as many of the baseline as the policy pools: runs of changes must not crowd
    them out. Pinned ones may be of any age. Raises `StorageError`.
    """
    ids, digests = ([getattr(task, name) for task in plan.tasks] for name in ("task_id", "task_digest"))
    where = ds.field("task_id").isin(pa.array(ids, pa.string())) | ds.field("task_digest").isin(
        pa.array(digests, pa.string())
    )
    if agent is not None:
        where &= ds.field("agent") == agent
    older = RunSelection(before=plan.run_id, newest=None).choose(history.run_ids())
    frames, pooled = [history.trials(COLUMNS, runs=RunSelection(ids=())).to_pandas()], set[str]()
    while older and (plan.pins is not None or len(pooled) < plan.policy.baseline.runs):
        older, newest = older[:-MOST_RUNS], frozenset(older[-MOST_RUNS:])
        frame = history.trials(COLUMNS, where, RunSelection(ids=newest)).to_pandas()
        pooled.update(frame[is_of_baseline(plan, frame) & (frame["agent"] == str(plan.agent))]["run_id"])
        frames.insert(0, frame)
    trials, renamed = _under_present_names(plan.tasks, pd.concat([one for one in frames if len(one)] or frames))
    return EarlierRuns(trials, renamed, repeats_of(plan, trials))


def pooled_baseline(plan: Plan, earlier: EarlierRuns, trials: Sequence[Trial] = ()) -> Baseline:
    """Return what earlier runs say of the plan's tasks, narrowed to the models that have answered in these trials."""
    models: dict[str, set[str]] = {}
    for trial in trials:
        if trial.status in MEASURED and trial.model:
            models.setdefault(f"{trial.suite}/{trial.task_id}", set()).add(trial.model)
    gate = plan.policy.gates.get(plan.gate)  # `baseline show` plans for a gate that the policy may lack
    rows, together = earlier.trials, tuple[Trial, ...]()
    if gate is not None and gate.reruns == "together":
        # On the baseline branch runs of the commit may be part of its own baseline: no trial counts on both sides.
        is_repeat = rows["run_id"].isin([one.run_id for one in earlier.repeats])
        rows, together = rows[~is_repeat], _repeated_trials(plan, rows[is_repeat])
    pooled = pool_baseline(plan, rows, models)
    renamed = {name: was for name, was in earlier.renamed.items() if pooled.of(name).n}
    return pooled.model_copy(update={"renamed": renamed, "repeats": earlier.repeats, "repeated_trials": together})


@refuse_foreign_rows()
def _repeated_trials(plan: Plan, repeats: pd.DataFrame) -> tuple[Trial, ...]:
    """Return the measured trials of earlier runs of the plan's commit, of tasks and graders that are the plan's."""
    tasks = {(str(task.suite), task.task_id, task.task_digest, task.grader_digest): task for task in plan.tasks}
    found = []
    for row in repeats[repeats["status"].isin([str(status) for status in MEASURED])].to_dict("records"):
        task = tasks.get((row["suite"], row["task_id"], row["task_digest"], row["grader_digest"]))
        if task is not None:
            where = f"in the earlier run {row['run_id']}"
            reason = f"failed {where}" if row["status"] == TrialStatus.FAILED else ""
            grades = violation_grades(f"{text} ({where})" for text in row["violations"])
            found.append(stored_trial(task, row, reason=reason, grades=grades, started_at=plan.created_at))
    return tuple(found)


def recent_runs(earlier: EarlierRuns, before: str, most: int = _RECENT_RUNS) -> Mapping[str, tuple[EarlierRun, ...]]:
    """Return the newest runs, the oldest first, by `suite/task_id` and by suite.

    Only runs count whose id is below `before`, and only first trials that were measured.
    """
    rows = measured_rows(earlier.trials[earlier.trials["run_id"] < before])
    runs: dict[str, list[EarlierRun]] = defaultdict(list)
    passed = (rows["status"] == str(TrialStatus.PASSED)).astype("int64")
    for keys in (["suite", "task_id"], ["suite"]):
        # Ids of runs begin with the time, so their order is that of the runs.
        counts = passed.groupby([rows[name] for name in (*keys, "run_id")], observed=True).agg(["sum", "size"])
        newest = counts.groupby(level=keys, observed=True).tail(most)
        for names, of_run, of_trials in zip(newest.index, newest["sum"], newest["size"], strict=True):
            *name, run_id = names
            runs["/".join(name)].append(EarlierRun(str(run_id), int(of_run), int(of_trials)))
    return {name: tuple(of_name) for name, of_name in runs.items()}


def pool_of(plan: Plan, earlier: EarlierRuns) -> Pool:
    """Return a plan's baseline in the light of its trials. Pooling takes a while, and depends on nothing of the trials
    but the models that have answered: it is done once for each of these.
    """
    known: dict[frozenset[tuple[str, str, str]], Baseline] = {}

    def pool(trials: Sequence[Trial]) -> Baseline:
        models = frozenset((str(one.suite), one.task_id, one.model) for one in trials if one.status in MEASURED)
        if models not in known:
            known[models] = pooled_baseline(plan, earlier, trials)
        return known[models]

    return pool


def pool_of_history(plan: Plan) -> Pool | None:
    """Return what the history says of the plan's tasks; `None` if it knows none of them. Raises `StorageError`."""
    # Each run is judged by itself.
    pool = pool_of(plan, replace(read_rows(plan), repeats=()))
    return pool if pool(()).runs else None


def pool_of_runs(plan: Plan, runs: Sequence[Sequence[Trial]]) -> Pool:
    """Return what runs say that are in no history, as if they had been run on the baseline branch."""
    return pool_of(alone(plan), EarlierRuns(rows_of(plan, runs)))


def alone(plan: Plan) -> Plan:
    """Return the plan of a run that is compared with whatever is on the baseline branch."""
    return plan.model_copy(update={"base": Base(), "pins": None})


def rows_of(plan: Plan, runs: Sequence[Sequence[Trial]]) -> pd.DataFrame:
    """Return runs as the history has them, their ids before that of the plan."""
    revision = Revision(branch=plan.policy.baseline.branch)
    made = [
        row
        for number, trials in enumerate(runs)
        for row in rows(trials, plan.model_copy(update={"run_id": f"{number:08}", "revision": revision}))
    ]
    return pd.DataFrame([{name: row[name] for name in COLUMNS} for row in made], columns=list(COLUMNS))


def _under_present_names(tasks: Sequence[EvalTask], trials: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of tasks under the names that these have now, and of renamed tasks the newest earlier name.

    What has the same inputs and graders is the same task. A name that a task still has is no other task's. Of a run
    that has a task under several names, the rows count that have its own name, or else the first one.
    """
    names = [trials["suite"], trials["task_id"]]
    own = pd.MultiIndex.from_arrays(names).isin([(str(task.suite), task.task_id) for task in tasks])
    present = {(task.task_digest, task.grader_digest): task for task in tasks}
    others = trials[~own]
    now = [present.get(version) for version in zip(others["task_digest"], others["grader_digest"], strict=True)]
    known = [task for task in now if task is not None]
    if not known:
        return trials[own], {}
    others = others[[task is not None for task in now]]
    was = others["suite"] + "/" + others["task_id"]
    others = others.assign(suite=[str(task.suite) for task in known], task_id=[task.task_id for task in known])
    run_and_task = ["run_id", "suite", "task_id"]
    keys = pd.MultiIndex.from_frame(others[run_and_task])
    is_free = ~keys.isin(pd.MultiIndex.from_frame(trials[own][run_and_task]))
    others = others[is_free & (was == was.groupby(keys).transform("min"))]
    newest = others.sort_values("run_id")
    renamed = dict(zip(newest["suite"] + "/" + newest["task_id"], was[newest.index], strict=True))
    return pd.concat([trials[own], others]), renamed


def repeats_of(context: RunContext, trials: pd.DataFrame) -> tuple[Repeat, ...]:
    """Return the earlier runs of the context's commit, gate and agent, the oldest first, from the rows of its tasks.

    A run of files that differ from their commit is of no commit.
    """
    if not context.revision.commit or context.revision.dirty:
        return ()
    wanted = {"gate": str(context.gate), "agent": str(context.agent), "git_commit": context.revision.commit}
    is_same = (trials["run_id"] < context.run_id) & ~trials["git_dirty"].isin([True])
    for column, value in wanted.items():
        is_same &= trials[column] == value
    thresholds = {task.name: task.scoring.threshold for task in context.tasks}
    failed: dict[str, list[str]] = {}
    for (run_id, suite, task_id), of_task in trials[is_same].groupby(["run_id", "suite", "task_id"]):
        name = f"{suite}/{task_id}"
        red = failed.setdefault(str(run_id), [])
        if _is_red(of_task, thresholds[name]):
            red.append(name)
    return tuple(Repeat(run_id=run_id, failed=tuple(names)) for run_id, names in failed.items())


def _is_red(trials: pd.DataFrame, threshold: float) -> bool:
    """Return whether the trials of a task in a run fail it by its metric, or did what they must never do."""
    if trials["violations"].map(lambda violations: violations is not None and len(violations) > 0).any():
        return True
    measured, first = measured_rows(trials), trials.iloc[0]
    outcomes = zip(measured["status"], measured["score"], strict=True)
    state = task_state(Metric(first["metric"]), int(first["k"]), threshold, outcomes)
    return state is TaskState.FAILED
