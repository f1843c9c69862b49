"""How the tasks of a run stand: which trials have finished, and which of the others need not be run."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import MEASURED, Trial

Needless = Callable[[EvalTask, Sequence[Trial]], str | None]
"""Why the trials of a task that are left need not be run, by those that were measured; `None` while they matter."""


def always_needed(task: EvalTask, trials: Sequence[Trial]) -> str | None:
    """No trial is left out."""
    return None


class RunState:
    """What the trials of a run have come to so far, those of before it was resumed included."""

    def __init__(self, before: Iterable[Trial] = (), needless: Needless = always_needed) -> None:
        self._finished: dict[TrialKey, Trial] = {}
        self._measured: dict[str, dict[int, Trial]] = defaultdict(dict)
        self._needless = needless
        for trial in before:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """A trial has finished. What was not measured is to be run again."""
        self._finished[trial.task_id, trial.trial] = trial
        if trial.status in MEASURED:
            self._measured[trial.task_id][trial.trial] = trial

    @property
    def finished(self) -> list[Trial]:
        """Every trial that has finished, as it did last."""
        return list(self._finished.values())

    def paid_for(self, key: TrialKey) -> float:
        """US dollars that a trial which is to be run again has cost so far."""
        return self._finished[key].cost if key in self._finished else 0.0

    def has(self, key: TrialKey) -> bool:
        """Whether a trial was measured."""
        task_id, trial = key
        return trial in self._measured[task_id]

    def needless(self, task: EvalTask) -> str | None:
        """Why no further trial of a task need be run now; `None` while one matters."""
        return self._needless(task, tuple(self._measured[task.task_id].values()))
