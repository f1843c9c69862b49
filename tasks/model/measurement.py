"""The numbers of a run: what was measured, with its uncertainty."""

from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.metrics import MeanMetrics
from passgate.tasks.model.task import Metric, Suite


class Interval(Frozen):
    """A 95 % interval."""

    low: float
    high: float


class TaskState(StrEnum):
    """What k trials say of a task. `undecided`: errors leave it open."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class TrialViolation(Frozen):
    """A violation and the trial that it happened in."""

    trial: int
    rule: str
    message: str


class TaskMeasurement(Frozen):
    """One task over its trials. `n = passed + failed`; errors are missing data and stay visible beside it."""

    suite: Suite
    task_id: str
    file: str
    line: int
    task_digest: str
    grader_digest: str
    metric: Metric
    k: int
    planned: int
    passed: int
    failed: int
    errors: int
    state: TaskState
    pass_at_k: float | None
    """`None` when fewer than k trials were measured."""
    pass_hat_k: float | None
    score: float | None = None
    """The mean score of its trials; for `confidence_interval` the lower end of its interval."""
    pass_rate: float | None
    pass_rate_interval: Interval
    failed_trials: tuple[int, ...] = ()
    error_trials: tuple[int, ...] = ()
    failure: str = ""
    """Why the first failed trial failed."""
    error: str = ""
    """Why the first trial with an error could not be measured."""
    violations: tuple[TrialViolation, ...] = ()
    metrics: MeanMetrics
    """Means over the trials in which each was measured."""
    tracked_metrics: tuple[str, ...] = ()
    wall_times: tuple[float, ...] = ()
    """Seconds of each trial in which the time was measured."""
    costs: tuple[float, ...] = ()
    """US dollars of each trial whose cost is known."""

    @property
    def n(self) -> int:
        return self.passed + self.failed

    @property
    def value(self) -> float | None:
        """The estimate of the task's own metric."""
        match self.metric:
            case Metric.PASS_AT_K:
                return self.pass_at_k
            case Metric.PASS_HAT_K:
                return self.pass_hat_k
            case _:
                return self.score


class SuiteMeasurement(Frozen):
    """One suite: the mean over its tasks of each task's own metric."""

    suite: Suite
    tasks: int
    tasks_passed: int
    tasks_undecided: int
    trials_passed: int
    trials_measured: int
    trials_error: int
    metric: str
    """`pass@k`, `pass^k`, or both with a comma when its tasks differ."""
    k: str
    """The tasks' k, as in `3` or `3-10`."""
    value: float | None
    interval: Interval | None
    steps: float | None
    """Mean per trial."""
    cost: float | None
    """Sum in US dollars; `None` when no trial's cost is known."""
    wall_time_seconds: float
    """Sum over the trials."""


class Measurement(Frozen):
    """Everything that was measured in one run."""

    suites: tuple[SuiteMeasurement, ...]
    tasks: tuple[TaskMeasurement, ...]
    latency_p95_seconds: float | None
    cost: float | None
    isolation: tuple[str, ...]


class BaselineTask(Frozen):
    """What the newest stored run on the baseline branch says of one task of the same digests."""

    run_id: str
    state: TaskState
    passed: int
    n: int
    wall_times: tuple[float, ...] = ()
    """Seconds per trial."""
    costs: tuple[float, ...] = ()


class Baseline(Frozen):
    """Per `suite/task_id`. A task without an entry has no baseline."""

    branch: str
    tasks: dict[str, BaselineTask] = {}
