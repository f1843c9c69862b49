"""Record: finished trials in, the history grown by one run out."""

from collections.abc import Sequence

from passgate.tasks.history.columns import rows
from passgate.tasks.history.dataset import History
from passgate.tasks.history.of_plan import day_of, history_location
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import FinishedTrial


def record(plan: Plan, finished: Sequence[FinishedTrial]) -> History:
    """Store a run that is complete, but for trials of earlier runs, which are stored already. Raises `StorageError`."""
    history = History(history_location(plan))
    own = [one for one in finished if not one.trial.reused_from]
    history.write_run(
        plan.run_id,
        day_of(plan),
        rows([one.trial for one in own], plan),
        {one.trial.transcript_digest: one.transcript.model_dump_json() for one in own},
    )
    return history
