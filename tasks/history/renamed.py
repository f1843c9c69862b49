"""Rows of a history whose task has another name by now: what has the same inputs and graders is the same task."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pandas as pd

from passgate.tasks.model.task import EvalTask

_TASK: Final = ["suite", "task_id"]
_RUN_AND_TASK: Final = ["run_id", *_TASK]


class PresentRows(NamedTuple):
    """Rows of a history, with the names that their tasks have now."""

    rows: pd.DataFrame
    renamed: dict[str, str]  # Of tasks with rows under another name, that name; of several the newest


def under_present_names(tasks: Sequence[EvalTask], rows: pd.DataFrame) -> PresentRows:
    """The rows of tasks, those under another name too. A name that a task still has is no other task's.

    Of a run that has a task under several names, the rows count that have its own name, or else the first one.
    """
    own = pd.MultiIndex.from_frame(rows[_TASK]).isin([(str(task.suite), task.task_id) for task in tasks])
    present = {(task.task_digest, task.grader_digest): task for task in tasks}
    others = rows[~own]
    now = [present.get(version) for version in zip(others["task_digest"], others["grader_digest"], strict=True)]
    if not any(now):
        return PresentRows(rows[own], {})
    known = [task for task in now if task is not None]
    others = others[[task is not None for task in now]]
    was = others["suite"] + "/" + others["task_id"]
    others = others.assign(suite=[str(task.suite) for task in known], task_id=[task.task_id for task in known])
    keys = pd.MultiIndex.from_frame(others[_RUN_AND_TASK])
    is_free = ~keys.isin(pd.MultiIndex.from_frame(rows[own][_RUN_AND_TASK]))
    others = others[is_free & (was == was.groupby(keys).transform("min"))]
    newest = others.sort_values("run_id")
    names = dict(zip(newest["suite"] + "/" + newest["task_id"], was[newest.index], strict=True))
    return PresentRows(pd.concat([rows[own], others]), names)
