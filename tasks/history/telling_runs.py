"""Which trials of a history a baseline is read from: summaries in, the trials of the runs that they name out.

The trials of years are many, and a baseline is made from the newest runs alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.baseline import of_the_baseline, telling_rows
from passgate.tasks.history.encoding import decoded
from passgate.tasks.history.recent import RUNS
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import joined_models, single_models

_TASK: Final = ["suite", "task_id"]
_RUN_AND_TASK: Final = ["run_id", *_TASK]
_VERSION: Final = [*_TASK, "task_digest", "grader_digest", "k", "metric", "model"]
SUMMARY_COLUMNS: Final = (*_VERSION, "run_id", "agent", "git_commit", "git_branch", "git_dirty", "passed", "failed")
"""The columns of the summaries that runs are chosen by."""


def rows_of_tasks(summaries: pa.Table, tasks: Sequence[EvalTask]) -> pa.Table:
    """The rows of tasks with the ids or the inputs of these, from encoded summaries with `SUMMARY_COLUMNS`."""
    known = {"task_id": [task.task_id for task in tasks], "task_digest": [task.task_digest for task in tasks]}
    found = [
        pc.is_in(summaries[name].cast(pa.string()), pa.array(values, pa.string())) for name, values in known.items()
    ]
    return summaries.filter(pc.or_(*found))


def rows_with(summaries: pa.Table, where: Mapping[str, str]) -> pd.DataFrame:
    """The rows whose columns have these values."""
    frame: pd.DataFrame = decoded(summaries).to_pandas()
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame.reset_index(drop=True)


def telling_trials(
    context: RunContext,
    summaries: pd.DataFrame,
    read: Callable[[frozenset[str]], pd.DataFrame],
    recent: int = RUNS,
) -> pd.DataFrame:
    """The trials of the runs without which `baseline_of`, or `recent_runs` with so many, would say something else of
    the plan's tasks. `read` gives the rows of some runs, `summaries` has a row for each task that it reads.

    A run whose trials cannot be read makes room for an older one. So does a run in which a model answered no measured
    trial, though its summary names it.
    """
    while True:
        runs = telling_runs(context, summaries, recent)
        trials = read(runs)
        told = _as_read(summaries, runs, trials)
        if told is None:
            return trials
        summaries = told


def _as_read(summaries: pd.DataFrame, runs: frozenset[str], trials: pd.DataFrame) -> pd.DataFrame | None:
    """The summaries as the trials of these runs say that they are; `None` where they say so already."""
    of_runs = summaries[summaries["run_id"].isin(runs)]
    keys = pd.MultiIndex.from_frame(of_runs[_RUN_AND_TASK])
    is_unread = ~keys.isin(pd.MultiIndex.from_frame(trials[_RUN_AND_TASK]))
    models = _models(telling_rows(trials)).reindex(keys).fillna("").to_numpy(dtype=object)
    is_another = ~is_unread & (of_runs["model"].fillna("") != models).to_numpy()
    if not (is_unread.any() or is_another.any()):
        return None
    told = summaries.drop(index=of_runs.index[is_unread])
    told.loc[of_runs.index[is_another], "model"] = models[is_another]
    return told


def _models(trials: pd.DataFrame) -> pd.Series:
    """The models that answered, by run and task."""
    pairs = trials[[*_RUN_AND_TASK, "model"]].fillna({"model": ""}).drop_duplicates()
    has_more = pairs.duplicated(_RUN_AND_TASK, keep=False)
    several = pairs[has_more].groupby(_RUN_AND_TASK)["model"].agg(_joined)
    models: pd.Series = pd.concat([pairs[~has_more].set_index(_RUN_AND_TASK)["model"], several])
    return models


def _joined(models: pd.Series) -> str:
    return joined_models(one for names in models for one in single_models(names))


def telling_runs(context: RunContext, rows: pd.DataFrame, recent: int) -> frozenset[str]:
    """The runs of `telling_trials`, if the summaries say what their trials do.

    These are the newest of each task, and of the baseline the newest of each version of each task and each model that
    answered, as many as the policy pools: the newest runs of several versions or models are among theirs.
    """
    rows = rows.assign(measured=rows["passed"] + rows["failed"] > 0)
    own = rows[(rows["agent"] == str(context.agent)) & rows["measured"] & (rows["run_id"] < context.run_id)]
    baseline = of_the_baseline(context, rows)
    chosen = [
        _newest(own[of_the_baseline(context, own)], _VERSION, context.policy.baseline.runs),
        _newest(rows[baseline], _TASK, 1),
        _newest(own, _TASK, recent),
        _newest(rows, _TASK, 1),
    ]
    return frozenset(np.concatenate(chosen).tolist())


def _newest(rows: pd.DataFrame, keys: list[str], most: int) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    newest = rows.sort_values("run_id").groupby(keys, sort=False, dropna=False).tail(most)
    return newest["run_id"].unique()
