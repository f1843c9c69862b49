"""What the earlier runs in a plan's history say of its tasks: their baseline, and the trials that replace its own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from passgate.tasks.history.baseline import COLUMNS, is_of_baseline, measured_rows, pool_baseline, task_state
from passgate.tasks.history.columns import policy_digest, rows
from passgate.tasks.history.dataset import MOST_RUNS, History, RunSelection, refuse_foreign_rows
from passgate.tasks.model.baseline import Baseline, Repeat
from passgate.tasks.model.grade import Grade, Violation, ViolationRule
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.run import Base, Plan, Revision, RunContext
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import MEASURED, FinishedTrial, Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import EarlierRun

Pool = Callable[[Sequence[Trial]], Baseline]  # What earlier runs say of a plan's tasks, in the light of its trials
_RECENT_RUNS: Final = 20  # Of each task
_REUSED_COLUMNS: Final = (
    *("run_id", "suite", "task_id", "task_digest", "grader_digest", "k", "metric", "trial", "status", "score"),
    *("reason", "violations", "grades", "attempts", "isolation", "started_at", "transcript_digest", "model"),
    *TrialMetrics.model_fields,
)  # From which trials are rebuilt
_Row = Mapping[Any, Any]


@dataclass(frozen=True)
class EarlierRuns:
    """The rows of a history that are of the tasks of a plan."""

    trials: pd.DataFrame
    renamed: Mapping[str, str] = field(default_factory=dict)  # The names that tasks had in some of these rows
    repeats: tuple[Repeat, ...] = ()  # Earlier runs of the commit that is run, the oldest first


def read_rows(plan: Plan) -> EarlierRuns:
    """Read what the plan's history, which git must not track, has of its agent. Raises `StorageError`."""
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
    return EarlierRuns(trials, renamed, find_repeats(plan, trials))


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
            grades = _violation_grades(f"{text} ({where})" for text in row["violations"])
            found.append(_stored_trial(task, row, reason=reason, grades=grades, started_at=plan.created_at))
    return tuple(found)


def recent_runs(earlier: EarlierRuns, before: str, most: int = _RECENT_RUNS) -> Mapping[str, tuple[EarlierRun, ...]]:
    """Return the newest runs, the oldest first, by `suite/task_id` and by suite. Only runs count whose id is below
    `before`, and only first trials that were measured.
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


def baseline_pool(plan: Plan, earlier: EarlierRuns) -> Pool:
    """Return a plan's baseline in the light of its trials, pooled once for all trials with the same models."""
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
    pool = baseline_pool(plan, replace(read_rows(plan), repeats=()))
    return pool if pool(()).runs else None


def pool_of_runs(plan: Plan, runs: Sequence[Sequence[Trial]]) -> Pool:
    """Return what runs say that are in no history, as if they had been run on the baseline branch."""
    return baseline_pool(alone(plan), EarlierRuns(history_rows(plan, runs)))


def alone(plan: Plan) -> Plan:
    """Return the plan of a run that is compared with whatever is on the baseline branch."""
    return plan.model_copy(update={"base": Base(), "pins": None})


def history_rows(plan: Plan, runs: Sequence[Sequence[Trial]]) -> pd.DataFrame:
    """Return runs as the history has them, their ids before that of the plan."""
    plan = plan.model_copy(update={"revision": Revision(branch=plan.policy.baseline.branch)})
    plans = (plan.model_copy(update={"run_id": f"{number:08}"}) for number in range(len(runs)))
    made = [row for one, trials in zip(plans, runs, strict=True) for row in rows(trials, one)]
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


def find_repeats(context: RunContext, trials: pd.DataFrame) -> tuple[Repeat, ...]:
    """Return the earlier runs of the context's commit, gate and agent, the oldest first, from the rows of its tasks. A
    run of files that differ from their commit is of no commit.
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


@refuse_foreign_rows()
def reusable_trials(plan: Plan) -> list[FinishedTrial]:
    """Return the trials of earlier runs that replace trials of the plan, without transcripts, if the policy allows it.
    For each task, take the newest run that measured it with the same gate, policy, agent, agent's files, task, graders
    and passgate, if that run decided the task without errors and is not too old. A failed task is no exception,
    otherwise it would run again until it passes. Confirming trials are included. Raise `UsageError`, `StorageError`.
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
    earlier = History(plan.history_location).trials(_REUSED_COLUMNS, where, runs).to_pandas()
    groups = dict(iter(earlier.groupby("task_id"))) if len(earlier) else {}
    known = [(task, groups[task.task_id]) for task in plan.tasks if task.task_id in groups]
    return [trial for task, rows in known for trial in _task_trials(plan, task, rows)]


def _task_trials(plan: Plan, task: EvalTask, trials: pd.DataFrame) -> Iterator[FinishedTrial]:
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
        for row in rows:
            metrics = TrialMetrics(**{name: _value(row[name]) for name in TrialMetrics.model_fields})
            plain = {name: row[name] for name in ("reason", "model", "attempts", "isolation", "transcript_digest")}
            grades, started_at = tuple(_grades(row)), row["started_at"].to_pydatetime()
            trial = _stored_trial(task, row, grades=grades, metrics=metrics, started_at=started_at, **plain)
            yield FinishedTrial(trial=trial, transcript=Transcript())


def _is_valid(plan: Plan, task: EvalTask, rows: Sequence[_Row]) -> bool:
    """Return whether the measured trials of a run are young enough and decide the task."""
    reuse, first = plan.gate_policy.reuse, [row for row in rows if row["trial"] < task.k]
    if reuse is None or not first:
        return False
    if plan.created_at - min(row["started_at"] for row in first) > timedelta(days=reuse.max_age_days):
        return False
    if len(first) == task.k or not plan.gate_policy.curtailment:
        return len(first) == task.k
    # Trials may be missing because the measured ones decide, whatever the others would be.
    outcomes = ((row["status"], row["score"]) for row in first)
    return task_state(task.metric, task.k, task.scoring.threshold, outcomes) is not TaskState.UNDECIDED


def _stored_trial(task: EvalTask, row: _Row, **others: Any) -> Trial:
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
    yield from _violation_grades(row["violations"])


def _violation_grades(texts: Iterable[str]) -> tuple[Grade, ...]:
    """Return the violations of a trial, as the history stores them, in a grade; no grade if there are none."""
    split = [text.partition(": ") for text in texts]
    found = tuple(Violation(rule=ViolationRule(rule), message=message) for rule, _, message in split)
    return (Grade(name="violations", type="earlier_run", score=0.0, passed=False, violations=found),) if found else ()


def _value(value: Any) -> Any:
    """Return a value of a row; `None` for `NaN`, which pandas has for a missing number."""
    return value if value == value else None
