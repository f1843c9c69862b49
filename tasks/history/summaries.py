"""Trials of runs to a row per run and eval task: schema/summary.schema.json. Both as DataFrames, for notebooks."""

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from passgate.tasks.history.columns import SUMMARY_VERSION, summary_schema
from passgate.tasks.history.dataset import History, RunSelection
from passgate.tasks.model.task import Metric
from passgate.tasks.model.trial import TrialMetrics, TrialStatus, joined_models, single_models
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k
from passgate.tasks.stats.measurement import task_score

Floats = npt.NDArray[np.float64]
_KEYS: Final = ("run_id", "suite", "task_id")
_OF_RUN: Final = (
    *("gate", "day", "task_digest", "grader_digest", "agent", "agent_digest", "git_commit", "git_branch", "git_dirty"),
    *("passgate_version", "policy_digest", "k", "metric"),
)
_LETTERS: Final = {
    TrialStatus.PASSED: "p",
    TrialStatus.FAILED: "f",
    TrialStatus.ERROR: "e",
    TrialStatus.NOT_RUN: "n",
}
_COUNTED: Final = {"passed": "p", "failed": "f", "errors": "e", "not_run": "n"}
_METRICS: Final = tuple(TrialMetrics.model_fields)
_COSTS: Final = ("cost", "judge_cost", "unmeasured_cost")
TRIAL_COLUMNS: Final = tuple(
    dict.fromkeys(
        (*_KEYS, *_OF_RUN, "model", "trial", "status", "score", "started_at", "violations", *_COSTS, *_METRICS)
    )
)
"""The columns of trials that summaries are made from."""
_TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


def task_summaries(trials: pa.Table) -> pa.Table:
    """Return a row per run and eval task of trials with `TRIAL_COLUMNS`, in the order of runs and tasks."""
    if not len(trials):
        return summary_schema().empty_table()
    rows = _summands(trials)
    whole = rows.group_by(list(_KEYS), use_threads=False).aggregate(
        [
            *((name, "first") for name in _OF_RUN),
            ("model", "distinct"),
            *((name, "sum") for name in ("violated", "confirmed", "refuted", "paid", *_COUNTED)),
            *((name, "list") for name in ("letter", "planned_score", "wall_time")),
            *((f"measured_{name}", "mean") for name in _METRICS),
            ("planned_start", "min"),
            ("end", "max"),
        ]
    )
    return _summary_table(whole.sort_by([(name, "ascending") for name in _KEYS]))


def _summands(trials: pa.Table) -> pa.Table:
    """Return the trials in their order, with columns that only need to be added up."""
    trials = trials.sort_by([(name, "ascending") for name in (*_KEYS, "trial")])
    planned = pc.less(trials["trial"], trials["k"])
    letters = pc.take(
        pa.array([*_LETTERS.values(), "n"]),
        pc.fill_null(pc.index_in(trials["status"], pa.array(map(str, _LETTERS))), len(_LETTERS)),
    )
    passed, failed = (pc.equal(letters, letter) for letter in "pf")
    measured = pc.and_(planned, pc.or_(passed, failed))
    seconds = pc.cast(pc.multiply(pc.fill_null(trials["wall_time_seconds"], 0.0), 1e6), pa.int64(), safe=False)
    confirming = pc.invert(planned)
    added = {
        "letter": _where(planned, letters),
        "planned_score": _where(planned, trials["score"]),
        "wall_time": _where(measured, trials["wall_time_seconds"]),
        "planned_start": _where(planned, trials["started_at"]),
        "end": pc.add(trials["started_at"], pc.cast(seconds, pa.duration("us"))),
        "violated": pc.fill_null(pc.greater(pc.list_value_length(trials["violations"]), 0), fill_value=False),
        "confirmed": pc.and_(confirming, passed),
        "refuted": pc.and_(confirming, failed),
        "paid": _paid(trials),
        **{name: pc.and_(planned, pc.equal(letters, letter)) for name, letter in _COUNTED.items()},
        **{f"measured_{name}": _where(measured, trials[name]) for name in _METRICS},
    }
    kept = trials.select([*_KEYS, *_OF_RUN, "model"])
    for name, column in added.items():
        kept = kept.append_column(name, column)
    return kept


def _where(condition: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def _paid(trials: pa.Table) -> pa.ChunkedArray:
    """Return what each trial cost in all; null where nothing of it is known."""
    known = pc.or_(pc.is_valid(trials[_COSTS[0]]), pc.is_valid(trials[_COSTS[1]]))
    known = pc.or_(known, pc.is_valid(trials[_COSTS[2]]))
    first, second, third = (pc.fill_null(trials[name], 0.0) for name in _COSTS)
    return _where(known, pc.add(pc.add(first, second), third))


def _summary_table(groups: pa.Table) -> pa.Table:
    columns: dict[str, Any] = {name: groups[name] for name in _KEYS}
    columns |= {name: groups[f"{name}_first"] for name in _OF_RUN}
    columns |= {name: groups[f"{name}_sum"] for name in _COUNTED}
    columns |= {name: groups[f"measured_{name}_mean"] for name in _METRICS}
    outcomes = pc.binary_join(_drop_nulls(groups["letter_list"]), "")
    columns |= {
        "summary_version": pa.array(np.full(len(groups), SUMMARY_VERSION)),
        "model": pa.array(
            (
                joined_models(one for name in names for one in single_models(name or ""))
                for names in groups["model_distinct"].to_pylist()
            ),
            pa.string(),
        ),
        "outcomes": outcomes,
        "confirming_passed": groups["confirmed_sum"],
        "confirming_failed": groups["refuted_sum"],
        "violations": groups["violated_sum"],
        "started_at": groups["planned_start_min"],
        "ended_at": groups["end_max"],
        "wall_times": _drop_nulls(groups["wall_time_list"]),
        "total_cost": groups["paid_sum"],
    }
    values = _values(pa.table({**columns, "scores": groups["planned_score_list"]}))
    columns["value"] = pa.array(values, pa.float64(), from_pandas=True)  # NaN becomes null
    schema = summary_schema()
    return pa.table({field.name: pc.cast(columns[field.name], field.type) for field in schema}).cast(schema)


def _drop_nulls(lists: pa.ChunkedArray) -> pa.ListArray:
    """Return the lists without the nulls in them."""
    whole = lists.combine_chunks()
    whole = whole if isinstance(whole, pa.ListArray) else pa.concat_arrays(whole.chunks)
    values, starts = whole.flatten(), np.concatenate(([0], np.cumsum(whole.value_lengths().to_numpy())))
    known = np.concatenate(([0], np.cumsum(pc.is_valid(values).to_numpy(zero_copy_only=False))))
    return pa.ListArray.from_arrays(pa.array(known[starts], pa.int32()), pc.drop_null(values))


def _values(groups: pa.Table) -> Floats:
    """Return the value of each row's metric; NaN where its trials have none."""
    k, passed, failed = (groups[name].to_numpy() for name in ("k", "passed", "failed"))
    n, planned = passed + failed, pc.utf8_length(groups["outcomes"]).to_numpy()
    at, hat = (pc.equal(groups["metric"], str(metric)).to_numpy() for metric in (Metric.PASS_AT_K, Metric.PASS_HAT_K))
    k = np.maximum(k, 1)
    values = np.where(hat, pass_hat_k(n, passed, k), np.where(at, pass_at_k(n, passed, k), np.nan))
    # Early stopping left out the other trials, or there was no money for them. Only early stopping gives a value.
    stopped = (n < k) & (groups["errors"].to_numpy() == 0) & (planned == k)
    values = np.where(stopped & hat & (failed > 0), 0.0, values)
    values = np.where(stopped & at & (passed > 0), 1.0, values)
    for index in np.flatnonzero(~(at | hat)):
        metric, least, scores = (groups[name][int(index)].as_py() for name in ("metric", "k", "scores"))
        value = task_score(Metric(metric), [score for score in scores if score is not None], least)
        values[index] = np.nan if value is None else value
    return values


def load(
    location: str = ".passgate/history",
    what: Literal["summaries", "trials"] = "summaries",
    *,
    since: str = "",
    until: str = "",
    suite: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a history at a folder or URL, of runs that began on these UTC days (`2026-01-31`).

    `summaries` has a row per run and eval task, `trials` a row per trial. Integers stay integers where some are not
    known: what is not known is `pandas.NA`. A history that does not exist yet has no rows. Raises `StorageError`.
    """
    history, runs = History(location), RunSelection(since, until, newest=None)
    if what == "trials":
        table = history.trials(where=None if suite is None else ds.field("suite") == suite, runs=runs)
    else:
        table = history.summaries(runs, suite)
    frame: pd.DataFrame = table.to_pandas(types_mapper=_TYPES.get)
    return frame
