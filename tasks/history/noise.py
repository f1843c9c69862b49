"""How much the times and costs of the trials of a baseline vary."""

from collections.abc import Iterator

import pandas as pd

from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import MEASURED
from passgate.tasks.stats.noise import Figure, Noise, noise_of

_COLUMNS = {Rule.LATENCY: "wall_time_seconds", Rule.COST: "cost"}


def noises_of(baseline: Baseline, rows: pd.DataFrame) -> dict[Rule, Noise]:
    """The noise of latency and of cost in the runs of a baseline, tasks by their `suite/task_id`, from the rows of its
    agent in the history.
    """
    measured = rows["status"].isin([str(status) for status in MEASURED])
    first = rows[measured & rows["run_id"].isin(list(baseline.runs)) & (rows["trial"] < rows["k"])]
    return {rule: noise_of(_figures(first, column)) for rule, column in _COLUMNS.items()}


def _figures(rows: pd.DataFrame, column: str) -> Iterator[Figure]:
    known = rows[rows[column].notna()]
    names = known["suite"].astype(str) + "/" + known["task_id"]
    yield from map(Figure, names, known["run_id"], known[column].astype(float))
