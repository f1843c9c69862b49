"""Record: finished trials in, the history grown by one run out."""

from collections.abc import Sequence

from passgate.tasks.history.columns import rows
from passgate.tasks.history.dataset import History
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import FinishedTrial


def record(context: RunContext, finished: Sequence[FinishedTrial]) -> History:
    """Store a run that is complete, but for trials of earlier runs, which are stored already. Raises `StorageError`."""
    history = History(context.history_location)
    own = [one for one in finished if not one.trial.reused_from]
    history.write_run(
        context.run_id,
        context.day,
        rows([one.trial for one in own], context),
        {one.trial.transcript_digest: one.transcript.model_dump_json() for one in own},
    )
    return history
