"""What a report gets to show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.run import Plan
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Verdict


@dataclass(frozen=True)
class EarlierRun:
    """What an earlier run says of a task or of a suite."""

    run_id: str
    passed: int
    """Trials of it."""
    measured: int


@dataclass(frozen=True)
class RunView:
    """A run that has ended."""

    verdict: Verdict
    trials: tuple[Trial, ...] = ()
    """The trials that were judged."""
    transcript: Callable[[str], Transcript | None] = lambda _: None
    """Reads a transcript by its digest when it is called: a run of thousands of trials has more of them than memory
    holds. `None` where the run does not keep it. Raises `StorageError`."""
    history: Mapping[str, BaselineTask] = field(default_factory=dict)
    """What the baseline says of each task, by its `suite/task_id`; empty where nobody asked the baseline."""
    earlier: Mapping[str, tuple[EarlierRun, ...]] = field(default_factory=dict)
    """The newest earlier runs of the same agent, the oldest first, by `suite/task_id` and by suite; empty where nobody
    asked the history."""
    plan: Plan | None = None
    """What was planned: the tasks with their budgets and the answers that they hope for. `None` where nobody knows."""
