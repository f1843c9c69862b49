"""A run of the history, and how two runs differ."""

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import GateName, Metric, Suite
from passgate.tasks.model.verdict import Decision


class RecordedRun(Frozen):
    """A run as its summaries have it; only the first k trials of each task count, but for the cost."""

    run_id: str
    gate: GateName
    agent: str
    git_branch: str
    """Empty outside a repository, like the commit."""
    git_commit: str
    tasks: int
    passed: int
    measured: int
    errors: int
    cost: float | None
    """US dollars."""
    decision: Decision | None = None
    """The verdict, where the run's folder is here."""
    reason: str = ""
    """The first reason that blocks, and how many more there are."""


class TaskDifference(Frozen):
    """A task in two runs: how many of its measured trials passed; `None` where the run has no such task."""

    suite: Suite
    task_id: str
    before: tuple[int, int] | None
    after: tuple[int, int] | None

    @property
    def change(self) -> float:
        """By how much its share of passed trials has changed; 0 where one of both is not known."""
        if not self.before or not self.after or not self.before[1] or not self.after[1]:
            return 0.0
        return self.after[0] / self.after[1] - self.before[0] / self.before[1]


class RecordedTask(Frozen):
    """An eval task of a stored run, from its summary; only the first k trials count where nothing else is said."""

    suite: Suite
    task_id: str
    k: int
    metric: Metric
    outcomes: str
    """A letter for each trial: `p`assed, `f`ailed, `e`rror, `n`ot run."""
    passed: int
    failed: int
    errors: int
    not_run: int
    confirming_passed: int
    confirming_failed: int
    violations: int
    """Trials, confirming ones too, in which the agent did what it must never do."""
    value: float | None
    """The value of the metric."""
    wall_time_seconds: float | None
    """The mean over the measured trials."""
    total_cost: float | None
    """US dollars for all trials, confirming ones too."""


class RecordedRunDetails(Frozen):
    """A stored run with its tasks."""

    run: RecordedRun
    models: tuple[str, ...]
    """Those that answered."""
    git_dirty: bool
    passgate_version: str
    tasks: tuple[RecordedTask, ...]


class PrunedRuns(Frozen):
    """What pruning a history takes away."""

    gone: tuple[RecordedRun, ...]
    pinned: tuple[str, ...]
    """Runs that stay because they are pinned."""
    needed: tuple[str, ...]
    """Runs that stay because a baseline needs them."""
    left: int
    """How many runs stay in all."""
