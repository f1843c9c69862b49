"""What went wrong in the runs of a baseline beside plain failures: trials without a measurement, and violations."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import pandas as pd

from passgate.tasks.history.baseline import COLUMNS
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import MEASURED, TrialStatus

ERROR_RATE_COLUMNS: Final = (*COLUMNS, "violations")
"""What troubles are read from."""


class ErrorRates(NamedTuple):
    """Of one task."""

    errors: float
    """Share of its trials that could not be measured."""
    violations: Mapping[Rule, float]
    """Share of its measured trials that violated each rule."""


def error_rates_of(baseline: Baseline, rows: pd.DataFrame) -> dict[str, ErrorRates]:
    """What went wrong in the runs of a baseline, by `suite/task_id`, from the rows of its agent in the history."""
    first = rows[rows["run_id"].isin(list(baseline.runs)) & (rows["trial"] < rows["k"])]
    tried = first[first["status"] != TrialStatus.NOT_RUN]
    return {
        f"{suite}/{task_id}": _troubles(of_task)
        for (suite, task_id), of_task in tried.groupby(["suite", "task_id"], sort=False)
    }


def _troubles(rows: pd.DataFrame) -> ErrorRates:
    measured = rows[rows["status"].isin([str(status) for status in MEASURED])]
    counts = Counter(
        Rule(rule)
        for violations in measured["violations"]
        for rule in {str(violation).partition(":")[0] for violation in (() if violations is None else violations)}
    )
    return ErrorRates(
        errors=1 - len(measured) / len(rows),
        violations={rule: count / len(measured) for rule, count in counts.items()},
    )
