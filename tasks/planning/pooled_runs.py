"""Pool runs: trials in, of the history or of runs that are in none, and what they say of each task out."""

from collections.abc import Sequence

import pandas as pd

from passgate.tasks.history.columns import rows
from passgate.tasks.history.error_rates import ERROR_RATE_COLUMNS
from passgate.tasks.integrity.earlier_runs import EarlierRuns
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.trial import Trial
from passgate.tasks.planning.baseline import Pool, pool_of, read_rows


def pool_of_history(plan: Plan) -> Pool | None:
    """What the history says of the plan's tasks; `None` where it knows none of them. Raises `UsageError`,
    `StorageError`.
    """
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
