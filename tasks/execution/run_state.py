"""The state of a run: which trials have ended, and which of the others need not be run."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from passgate.tasks.agents.starts import Starts
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.history.journal import TrialWriter
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import MEASURED, FinishedTrial, Trial

Needless = Callable[[EvalTask, Sequence[Trial]], str | None]
"""Why the trials of a task that are left need not be run, by those that were measured; `None` while they matter."""


def always_needed(task: EvalTask, trials: Sequence[Trial]) -> str | None:
    """No trial is left out."""
    return None


class RunState:
    """What the trials of a run have come to so far, including those that ended before it was resumed."""

    def __init__(
        self,
        before: Iterable[Trial] = (),
        needless: Needless = always_needed,
        *,
        journal: TrialWriter | None = None,
        starts: Starts | None = None,
    ) -> None:
        """Begin with the trials `before`. `starts` counts agents that could not start, if these stop the run."""
        self._finished: dict[TrialKey, Trial] = {}
        self._measured: dict[str, dict[int, Trial]] = defaultdict(dict)
        self._needless = needless
        self._journal, self.starts = journal, starts
        self.warnings: dict[str, None] = {}
        """Problems that no trial depends on, each once."""
        for trial in before:
            self.add(trial)

    async def record(self, finished: FinishedTrial) -> None:
        """Write a trial that has ended to the journal. It counts from then on.

        Raises `StorageError`, and `UsageError` when enough trials show that the agent cannot be run.
        """
        if self._journal is not None:
            await self._journal.append(finished)
        if finished.trial.left_out:
            return
        if self.starts is not None:
            self.starts.add(finished)
        self.add(finished.trial)

    def add(self, trial: Trial) -> None:
        """Count a trial that has ended. A trial that was not measured can be run again."""
        self._finished[trial.task_id, trial.trial] = trial
        if trial.status in MEASURED:
            self._measured[trial.task_id][trial.trial] = trial

    @property
    def finished(self) -> list[Trial]:
        """Every trial that has ended, as it ended last."""
        return list(self._finished.values())

    @property
    def spent(self) -> float:
        """US dollars that the run has cost so far. Trials of earlier runs are paid for."""
        return sum(trial.cost for trial in self._finished.values() if not trial.reused_from)

    def paid_for(self, key: TrialKey) -> float:
        """US dollars that the earlier attempts at a trial have cost."""
        return self._finished[key].cost if key in self._finished else 0.0

    def has(self, key: TrialKey) -> bool:
        """Whether a trial was measured."""
        task_id, trial = key
        return trial in self._measured[task_id]

    def needless(self, task: EvalTask) -> str | None:
        """Why no further trial of a task need be run now; `None` while one matters."""
        return self._needless(task, tuple(self._measured[task.task_id].values()))
