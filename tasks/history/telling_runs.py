"""Which runs the trials of a baseline are read from: summaries of a history in, ids of runs out.

The trials of years are many, and a baseline is made from the newest runs alone.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.baseline import of_the_baseline
from passgate.tasks.history.encoding import decoded
from passgate.tasks.history.recent import RUNS
from passgate.tasks.model.run import RunContext

_TASK: Final = ["suite", "task_id"]
_VERSION: Final = [*_TASK, "task_digest", "grader_digest", "k", "metric", "model"]
SUMMARY_COLUMNS: Final = (*_VERSION, "run_id", "agent", "git_commit", "git_branch", "git_dirty", "passed", "failed")
"""The columns of the summaries that runs are chosen by."""


def rows_of_tasks(summaries: pa.Table, tasks: Sequence[str]) -> pd.DataFrame:
    """The rows of tasks with these ids, from encoded summaries with `SUMMARY_COLUMNS`."""
    names = summaries["task_id"].cast(pa.string())
    frame: pd.DataFrame = decoded(summaries.filter(pc.is_in(names, pa.array(tasks, pa.string())))).to_pandas()
    return frame


def telling_runs(context: RunContext, rows: pd.DataFrame) -> frozenset[str]:
    """The runs without which `baseline_of`, or `recent_runs`, would say something else of the plan's tasks.

    These are the newest of each task, and of the baseline the newest of each version of each task and each model that
    answered, as many as the policy pools: the newest runs of several versions or models are among theirs.
    """
    rows = rows.assign(measured=rows["passed"] + rows["failed"] > 0)
    own = rows[(rows["agent"] == str(context.agent)) & rows["measured"] & (rows["run_id"] < context.run_id)]
    baseline = of_the_baseline(context, rows)
    chosen = [
        _newest(own[of_the_baseline(context, own)], _VERSION, context.policy.baseline.runs),
        _newest(rows[baseline], _TASK, 1),
        _newest(own, _TASK, RUNS),
        _newest(rows, _TASK, 1),
    ]
    return frozenset(np.concatenate(chosen).tolist())


def _newest(rows: pd.DataFrame, keys: list[str], most: int) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    newest = rows.sort_values("run_id").groupby(keys, sort=False, dropna=False).tail(most)
    return newest["run_id"].unique()
