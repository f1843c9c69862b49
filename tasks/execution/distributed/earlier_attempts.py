"""What earlier attempts at a batch have left in the journal: a lost worker's batch is run again, its trials are not."""

from passgate.tasks.agents.starts import counted_trials
from passgate.tasks.execution.distributed.orders import read_released
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Batch, BatchOutcome, Released


class EarlierAttempts:
    """The trials of a batch that have ended before, and those of its eval tasks that other batches have run."""

    def __init__(self, store: RunStore, batch: Batch, part: str) -> None:
        """Read them. Raises `StorageError`."""
        others = store.read_journal(without=part) if batch.continued else []
        own = store.read_part(part)
        paid = {(one.trial.task_id, one.trial.trial): one.trial.cost for one in others}
        self._own = own
        self.released = read_released(store, part) or Released(trials=())
        """What an earlier attempt has given back."""
        self.keys = {*((one.trial.task_id, one.trial.trial) for one in own), *self.released.trials}
        """The trials that this batch need not run any more."""
        self.finished = counted_trials([*others, *own])
        """What says something of the agent."""
        self.spent = sum(one.trial.cost - paid.get((one.trial.task_id, one.trial.trial), 0.0) for one in own)
        """US dollars."""

    def and_then(self, outcome: BatchOutcome) -> BatchOutcome:
        """The outcome of the batch over all attempts, given that of the last one."""
        return outcome.model_copy(
            update={
                "trials": (*(one.trial for one in self._own if not one.trial.left_out), *outcome.trials),
                "spent": self.spent + outcome.spent,
                "not_started": (
                    *(one.transcript.detail for one in self._own if one.has_not_started),
                    *outcome.not_started,
                ),
                "released": (*self.released.trials, *outcome.released),
            }
        )
