"""The baseline of a plan: what the earlier runs in its history say of its tasks."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.integrity.earlier_runs import EarlierRuns, read_earlier_runs
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import MEASURED, Trial

Pool = Callable[[Sequence[Trial]], Baseline]
"""What earlier runs say of a plan's tasks, in the light of its trials so far."""


def read_rows(plan: Plan) -> EarlierRuns:
    """The rows of the history that baselines of the plan are made from. Raises `UsageError`, `StorageError`."""
    where = {"agent": str(plan.agent)}
    return read_earlier_runs(plan.history_location, Path.cwd(), datetime.now(UTC), COLUMNS, where)


def pooled_baseline(plan: Plan, earlier: EarlierRuns, trials: Sequence[Trial] = ()) -> Baseline:
    """What earlier runs say of the plan's tasks, narrowed to the models that have answered in these trials."""
    models: dict[str, set[str]] = {}
    for trial in trials:
        if trial.status in MEASURED and trial.model:
            models.setdefault(f"{trial.suite}/{trial.task_id}", set()).add(trial.model)
    pooled = baseline_of(plan, earlier.trials, models)
    return pooled.model_copy(update={"left_out": earlier.left_out})


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
