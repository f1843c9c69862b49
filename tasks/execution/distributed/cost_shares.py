"""The money of a run, shared out among distributed batches."""

from passgate.tasks.model.run import Batch


class CostShares:
    """What is left of the cost cap of a run, in US dollars, without what batches hold that run now."""

    def __init__(self, left: float | None) -> None:
        """Without a cost cap every share is `None`."""
        self._left = left
        self.call_cost = 0.0
        """What a call has cost on average, in the batch that has ended last and has made some."""

    @property
    def left(self) -> float | None:
        return None if self._left is None else max(0.0, self._left)

    def share(self, batch: Batch, waiting: int) -> float | None:
        """Hand out the share of a batch, by its part of all trials that wait for their batch, its own included."""
        left = self.left
        if self._left is None or left is None:
            return None
        share = left * len(batch.trials) / waiting
        self._left -= share
        return share

    def take_back(self, amount: float | None) -> None:
        """A batch has given back this of its share. What it has spent above its share is less than nothing."""
        if self._left is not None:
            self._left += amount or 0.0
