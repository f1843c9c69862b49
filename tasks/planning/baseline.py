"""The baseline of a plan: what the earlier runs in its history say of its tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from passgate.tasks.history.baseline import COLUMNS, ERROR_RATE_COLUMNS, baseline_of
from passgate.tasks.history.columns import rows
from passgate.tasks.history.dataset import History, TasksOfRuns, joined
from passgate.tasks.history.renamed import under_present_names
from passgate.tasks.history.repeats import REPEAT_COLUMNS, repeats_of
from passgate.tasks.history.telling_runs import SUMMARY_COLUMNS, rows_of_tasks, rows_with, telling_trials
from passgate.tasks.model.baseline import Baseline, Repeat
from passgate.tasks.model.run import Base, Plan, Revision, RunContext
from passgate.tasks.model.trial import MEASURED, Trial

Pool = Callable[[Sequence[Trial]], Baseline]
"""What earlier runs say of a plan's tasks, in the light of its trials so far."""


@dataclass(frozen=True)
class EarlierRuns:
    """What a history holds of the tasks of a plan."""

    trials: pd.DataFrame
    renamed: Mapping[str, str] = field(default_factory=dict)  # Of tasks that had another name in them, that name
    repeats: tuple[Repeat, ...] = ()  # Of the commit that is run, the oldest first


def read_rows(plan: Plan) -> EarlierRuns:
    """The rows of the history that baselines of the plan are made from; it is known that git does not track it.

    Raises `StorageError`.
    """
    return read_telling_rows(plan, History(plan.history_location), COLUMNS, {"agent": str(plan.agent)})


def read_telling_rows(
    plan: RunContext, history: History, columns: Sequence[str], where: Mapping[str, str] | None = None
) -> EarlierRuns:
    """The rows of a history whose columns have these values, of the plan's tasks in the runs that make their baseline.

    Its summaries say which runs these are. Raises `StorageError`.
    """
    of_summaries = tuple(dict.fromkeys((*SUMMARY_COLUMNS, *REPEAT_COLUMNS)))
    parts = [rows_of_tasks(portion, plan.tasks) for portion in history.encoded_portions(of_summaries)]
    summaries = rows_with(joined(parts, of_summaries), where or {})
    tasks, renamed = frozenset(summaries["task_id"]), dict[str, str]()

    def read(runs: frozenset[str]) -> pd.DataFrame:
        trials = history.trials(where, columns, TasksOfRuns(runs, tasks))[list(columns)]
        present = under_present_names(plan.tasks, trials)
        renamed.update(present.renamed)
        return present.rows

    summaries = under_present_names(plan.tasks, summaries).rows
    trials = telling_trials(plan, summaries, read)
    return EarlierRuns(trials, renamed, repeats_of(plan, summaries))


def pooled_baseline(plan: Plan, earlier: EarlierRuns, trials: Sequence[Trial] = ()) -> Baseline:
    """What earlier runs say of the plan's tasks, narrowed to the models that have answered in these trials."""
    models: dict[str, set[str]] = {}
    for trial in trials:
        if trial.status in MEASURED and trial.model:
            models.setdefault(f"{trial.suite}/{trial.task_id}", set()).add(trial.model)
    pooled = baseline_of(plan, earlier.trials, models)
    renamed = {name: was for name, was in earlier.renamed.items() if pooled.of(name).n}
    return pooled.model_copy(update={"renamed": renamed, "repeats": earlier.repeats})


def pool_of(plan: Plan, earlier: EarlierRuns) -> Pool:
    """A plan's baseline in the light of its trials. Pooling takes a while, and depends on nothing of the trials but the
    models that have answered: it is done once for each of these.
    """
    known: dict[frozenset[tuple[str, str, str]], Baseline] = {}

    def pool(trials: Sequence[Trial]) -> Baseline:
        models = frozenset((str(one.suite), one.task_id, one.model) for one in trials if one.status in MEASURED)
        if models not in known:
            known[models] = pooled_baseline(plan, earlier, trials)
        return known[models]

    return pool


def pool_of_history(plan: Plan) -> Pool | None:
    """What the history says of the plan's tasks; `None` where it knows none of them. Raises `StorageError`."""
    pool = pool_of(plan, read_rows(plan))
    return pool if pool(()).runs else None


def pool_of_runs(plan: Plan, runs: Sequence[Sequence[Trial]]) -> Pool:
    """What runs say that are in no history, as if they had been run on the baseline branch."""
    return pool_of(alone(plan), EarlierRuns(rows_of(plan, runs)))


def alone(plan: Plan) -> Plan:
    """The plan of a run that is compared with whatever is on the baseline branch."""
    return plan.model_copy(update={"base": Base(), "pins": None})


def rows_of(plan: Plan, runs: Sequence[Sequence[Trial]]) -> pd.DataFrame:
    """Runs as the history has them, their ids before that of the plan."""
    revision = Revision(branch=plan.policy.baseline.branch)
    made = [
        row
        for number, trials in enumerate(runs)
        for row in rows(trials, plan.model_copy(update={"run_id": f"{number:08}", "revision": revision}))
    ]
    return pd.DataFrame(
        [{name: row[name] for name in ERROR_RATE_COLUMNS} for row in made], columns=list(ERROR_RATE_COLUMNS)
    )
