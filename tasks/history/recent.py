"""The newest runs of a history, task by task and suite by suite."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pandas as pd

from passgate.tasks.model.run_view import EarlierRun
from passgate.tasks.model.trial import TrialStatus

RUNS: Final = 20
"""Runs of each task."""


def recent_runs(trials: pd.DataFrame, before: str, most: int = RUNS) -> Mapping[str, tuple[EarlierRun, ...]]:
    """The newest runs of the rows of a history, the oldest first, by `suite/task_id` and by suite.

    Only runs count whose id is below `before`, and only first trials that were measured.
    """
    told = trials[
        (trials["run_id"] < before)
        & (trials["trial"] < trials["k"])
        & trials["status"].isin([str(TrialStatus.PASSED), str(TrialStatus.FAILED)])
    ]
    runs: dict[str, list[EarlierRun]] = defaultdict(list)
    passed = (told["status"] == str(TrialStatus.PASSED)).astype("int64")
    for keys in (["suite", "task_id"], ["suite"]):
        # Ids of runs begin with the time, so their order is that of the runs.
        counts = passed.groupby([told[name] for name in (*keys, "run_id")], observed=True).agg(["sum", "size"])
        newest = counts.groupby(level=keys, observed=True).tail(most)
        for names, of_run, of_trials in zip(newest.index, newest["sum"], newest["size"], strict=True):
            *name, run_id = names
            runs["/".join(name)].append(EarlierRun(str(run_id), int(of_run), int(of_trials)))
    return {name: tuple(of_name) for name, of_name in runs.items()}
