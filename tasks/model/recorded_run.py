"""A run of the history, and how two runs differ."""

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import GateName, Suite


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
