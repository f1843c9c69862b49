"""What the newest runs of the baseline say of each task."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, Final, NamedTuple

import pandas as pd

from passgate.tasks.model.baseline import (
    GREEN_SHARE,
    RED_IN_A_ROW,
    RED_SHARE,
    Baseline,
    BaselineState,
    BaselineTask,
    FiguresOfRuns,
    Restart,
)
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import MEASURED, TrialStatus, single_models
from passgate.tasks.stats.expected_rates import Counts, is_worse
from passgate.tasks.stats.measurement import decide
from passgate.tasks.stats.regression import ENOUGH

COLUMNS: Final = (
    *("run_id", "gate", "suite", "task_id", "task_digest", "grader_digest", "agent", "model"),
    *("git_commit", "git_branch", "git_dirty", "trial", "k", "metric", "status", "score", "violations"),
    *("wall_time_seconds", "cost"),
)
"""What a baseline is read from."""
_DIGESTS: Final = ("grader_digest", "task_digest")


def pool_baseline(
    context: RunContext, trials: pd.DataFrame, models: Mapping[str, Collection[str]] | None = None
) -> Baseline:
    """Pool the baseline of a plan's tasks from rows of the history with `COLUMNS`, of any agents and branches.

    Rows count that are of an earlier run of the baseline and of the plan's agent, and have the task's digest, grader
    digest, k and metric; of those the newest runs of each task, as many as the policy says. While the task's own trials
    are too few to guard it, those with another task digest count too. `models` narrows a task, by its `suite/task_id`,
    to the runs in which one of these models answered; if it names none, all count.
    """
    rows = trials[is_of_baseline(context, trials)]
    known = set(rows[["suite", "task_id"]].drop_duplicates().itertuples(index=False, name=None))
    measured = measured_rows(rows[rows["agent"] == str(context.agent)])
    groups = dict(iter(measured.groupby(["suite", "task_id"], sort=False))) if len(measured) else {}

    def entry(task: EvalTask) -> BaselineTask:
        key = (str(task.suite), task.task_id)
        if key not in known:
            return BaselineTask(state=BaselineState.NEW)
        if key not in groups:
            return BaselineTask(state=BaselineState.NONE)
        wanted, most_runs = (models or {}).get(task.name, ()), context.policy.baseline.runs
        same = _alike(task, groups[key], *_DIGESTS)
        answered = _model_rows(same, wanted)
        found = _pool(task, answered, most_runs)
        if found.n < ENOUGH and len(same) < len(groups[key]):
            found = _pool_with_earlier_versions(task, found, _model_rows(groups[key], wanted), most_runs)
        if len(answered) == len(same):
            return found
        # A task is admitted for what it is, whichever model answers now.
        return found.model_copy(update={"newest": _pool(task, same, most_runs).newest})

    commit = context.base.commit
    if context.pins is not None and context.pins.commit is not None:
        # The ancestors of a plan with a pinned commit are that commit's.
        commit = next(iter(context.base.ancestors), context.pins.commit)
    return Baseline(
        branch=context.policy.baseline.branch,
        commit=commit,
        pinned=context.pins is not None,
        young=context.policy.baseline.young,
        tasks={task.name: entry(task) for task in context.tasks},
    )


def measured_rows(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of planned trials that were measured."""
    return trials[trials["status"].isin([str(status) for status in MEASURED]) & (trials["trial"] < trials["k"])]


def baseline_state(greens: Sequence[bool]) -> BaselineState:
    """Return how a task stands whose decided runs, the newest first, passed it or not.

    Red when at most `RED_SHARE` of the runs passed it, or when the newest `RED_IN_A_ROW` all failed it: it has drifted,
    and what it was long ago is no reason to blame a change for it. Green when at least `GREEN_SHARE` passed it.
    Unreliable in between. There is no such drift to green: a task that is now green and now red has lucky streaks.
    """
    if not greens:
        return BaselineState.NONE
    share = Fraction(sum(greens), len(greens))
    drifted = len(greens) >= RED_IN_A_ROW and not any(greens[:RED_IN_A_ROW])
    if drifted or share <= RED_SHARE:
        return BaselineState.RED
    return BaselineState.GREEN if share >= GREEN_SHARE else BaselineState.UNRELIABLE


def is_of_baseline(context: RunContext, trials: pd.DataFrame) -> pd.Series:
    """Return which rows are of the baseline: of the pinned runs or commit, the merge base, or else of the branch.

    A run of files that differ from their commit is of no commit and no branch; only a pin by name makes it one.
    """
    earlier = trials["run_id"] < context.run_id
    pins, clean = context.pins, ~trials["git_dirty"].isin([True])
    if pins is not None and pins.runs:
        return earlier & _begins(trials["run_id"], pins.runs)
    if context.base.ancestors:
        return earlier & clean & trials["git_commit"].isin(context.base.ancestors)
    if pins is not None and pins.commit:  # whose ancestors git does not know here
        return earlier & clean & _begins(trials["git_commit"], (pins.commit,))
    return earlier & clean & (trials["git_branch"] == context.policy.baseline.branch)


def _begins(values: pd.Series, beginnings: tuple[str, ...]) -> pd.Series:
    return values.isin([value for value in values.dropna().unique() if value.startswith(beginnings)])


def _alike(task: EvalTask, rows: pd.DataFrame, *digests: str) -> pd.DataFrame:
    """Return the rows that have the task's k, its metric and these digests of it."""
    alike = (rows["k"] == task.k) & (rows["metric"] == str(task.metric))
    for digest in digests:
        alike &= rows[digest] == getattr(task, digest)
    return rows[alike]


def _pool_with_earlier_versions(task: EvalTask, own: BaselineTask, rows: pd.DataFrame, most_runs: int) -> BaselineTask:
    """Pool the newest runs of a task with those before its edit, or only its own if the others do not guard it."""
    # What passes on the branch under other graders too is no other task: their edit disarms nothing.
    versions = _alike(task, rows, *(() if own.state is BaselineState.GREEN else ("grader_digest",)))
    earlier = _pool(task, versions.drop(_alike(task, versions, *_DIGESTS).index), most_runs)
    if not earlier.n:
        is_known = len(rows) > len(versions)
        return own.model_copy(update={"restart": Restart.GRADERS}) if is_known else own
    # Whatever made it worse is on the branch: no change is to blame for that.
    if is_worse(Counts(own.passed, own.n), Counts(earlier.passed, earlier.n)):
        return own.model_copy(update={"restart": Restart.WORSE})
    both = _pool(task, versions, most_runs)
    if both.n < ENOUGH:
        return own
    before_edit = sum(n for run, (_, n) in both.counts.items() if run in earlier.counts)
    update = {"newest": own.newest, "wall_times": own.wall_times, "costs": own.costs, "before_edit": before_edit}
    return both.model_copy(update=update)


def _model_rows(rows: pd.DataFrame, models: Collection[str]) -> pd.DataFrame:
    """Return the whole runs in which one of these models had a part; all if none is known. An agent of two models that
    fails before it asks the second is still the same, and half a run would decide nothing but failures.
    """
    wanted = {name for names in models for name in single_models(names)}
    if not wanted:
        return rows
    named = {names for names in rows["model"].dropna().unique() if wanted.intersection(single_models(names))}
    return rows[rows["run_id"].isin(rows[rows["model"].isin(named)]["run_id"])]


def _pool(task: EvalTask, rows: pd.DataFrame, most_runs: int) -> BaselineTask:
    """Pool the newest runs. Where runs stop as soon as they have decided, `passed / n` still comes out right over
    many of them: the trials of all that pass are, on average, that share of the trials of all (Wald's identity).
    """
    newest = sorted(rows["run_id"].unique(), reverse=True)[:most_runs]
    rows = rows[rows["run_id"].isin(newest)].sort_values(["run_id", "trial"], ascending=False)
    states = {
        run_id: task_state(task.metric, task.k, task.scoring.threshold, (outcome for _, *outcome in of_run))
        for run_id, of_run in groupby(zip(rows["run_id"], rows["status"], rows["score"], strict=True), itemgetter(0))
    }
    decided = {run: state is TaskState.PASSED for run, state in states.items() if state is not TaskState.UNDECIDED}
    greens = list(decided.values())
    passes = rows["status"] == TrialStatus.PASSED
    return BaselineTask(
        state=baseline_state(greens),
        runs=tuple(decided),
        runs_green=sum(greens),
        green_in_a_row=sum(1 for _ in takewhile(bool, greens)),
        passed=int(passes.sum()),
        n=len(rows),
        counts={
            str(run): (int(of_run.sum()), len(of_run)) for run, of_run in passes.groupby(rows["run_id"], sort=False)
        },
        newest=tuple(passes.tolist()),
        wall_times=_by_run(rows, "wall_time_seconds"),
        costs=_by_run(rows, "cost"),
    )


def _by_run(rows: pd.DataFrame, column: str) -> FiguresOfRuns:
    known = rows[rows[column].notna()]
    return {str(run): tuple(values) for run, values in known.groupby("run_id", sort=False)[column]}


def task_state(metric: Metric, k: int, threshold: float, outcomes: Iterable[Sequence[Any]]) -> TaskState:
    """Return how a run decides a task, from the status and score of its measured planned trials, of k."""
    ended = list(outcomes)
    passed = sum(status == TrialStatus.PASSED for status, _ in ended)
    return decide(
        metric,
        passed=passed,
        failed=len(ended) - passed,
        planned=k,
        scores=[score for _, score in ended if not pd.isna(score)],
        threshold=threshold,
    )


class ErrorRates(NamedTuple):
    """Of one task."""

    errors: float  # Share of its trials that could not be measured
    violations: Mapping[Rule, float]  # Share of its measured trials that violated each rule


def error_rates(baseline: Baseline, rows: pd.DataFrame) -> dict[str, ErrorRates]:
    """Return what went wrong in the runs of a baseline, by `suite/task_id`, from the rows of its agent."""
    first = rows[rows["run_id"].isin(list(baseline.runs)) & (rows["trial"] < rows["k"])]
    tried = first[first["status"] != TrialStatus.NOT_RUN]
    rates = dict[str, ErrorRates]()
    for (suite, task_id), of_task in tried.groupby(["suite", "task_id"], sort=False):
        measured = measured_rows(of_task)
        counts = Counter(
            Rule(rule)
            for violations in measured["violations"]
            for rule in {str(violation).partition(":")[0] for violation in (() if violations is None else violations)}
        )
        violations = {rule: count / len(measured) for rule, count in counts.items()}
        rates[f"{suite}/{task_id}"] = ErrorRates(1 - len(measured) / len(of_task), violations)
    return rates
