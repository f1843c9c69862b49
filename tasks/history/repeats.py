"""Earlier runs of the commit that a run is of: what was run again until it was green has been red before."""

from typing import Final

import pandas as pd

from passgate.tasks.model.baseline import Repeat
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import Metric

REPEAT_COLUMNS: Final = (
    *("run_id", "gate", "agent", "git_commit", "git_dirty", "suite", "task_id"),
    *("metric", "failed", "violations", "value"),
)
"""The columns of the summaries that repeats are told from."""
_ROUNDING: Final = 1e-9


def repeats_of(context: RunContext, summaries: pd.DataFrame) -> tuple[Repeat, ...]:
    """The earlier runs of the context's commit, gate and agent, the oldest first, from summaries of its tasks.

    A run of files that differ from their commit is of no commit.
    """
    if not context.revision.commit or context.revision.dirty:
        return ()
    wanted = {"gate": str(context.gate), "agent": str(context.agent), "git_commit": context.revision.commit}
    is_same = (summaries["run_id"] < context.run_id) & ~summaries["git_dirty"].isin([True])
    for column, value in wanted.items():
        is_same &= summaries[column] == value
    same = summaries[is_same]
    failed = (same["suite"] + "/" + same["task_id"]).where(_failed(context, same))
    return tuple(
        Repeat(run_id=str(run_id), failed=tuple(sorted(of_run.dropna())))
        for run_id, of_run in failed.groupby(same["run_id"])
    )


def _failed(context: RunContext, rows: pd.DataFrame) -> pd.Series:
    """Which tasks failed by their metric, or did what they must never do."""
    thresholds = {task.task_id: task.scoring.threshold for task in context.tasks}
    by_scores = rows["metric"].isin([str(Metric.MEAN), str(Metric.CONFIDENCE_INTERVAL)])
    least = rows["task_id"].map(thresholds).astype("float64").where(by_scores, 1.0)
    # One failure decides pass^k, also where errors leave it without a value.
    by_one = (rows["metric"] == str(Metric.PASS_HAT_K)) & (rows["failed"] > 0)
    return by_one | (rows["value"] < least - _ROUNDING) | (rows["violations"] > 0)
