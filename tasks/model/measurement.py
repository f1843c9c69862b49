"""The numbers of a run: what was measured, with its uncertainty."""

from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import MeanMetrics


class Interval(Frozen):
    """A 95 % interval."""

    low: float
    high: float


class TaskState(StrEnum):
    """What k trials say of a task. `undecided`: errors leave it open."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"

    @property
    def indicator(self) -> float | None:
        """1 of a task that has passed, 0 of one that has failed; `None` while that is open."""
        return {TaskState.PASSED: 1.0, TaskState.FAILED: 0.0}.get(self)


class TrialViolation(Frozen):
    """A violation and the trial that it happened in."""

    trial: int
    rule: str
    message: str
    run_id: str = ""
    """The earlier run of the same commit that the trial is of; empty where it is of this run."""


class TaskMeasurement(Frozen):
    """One task over its trials. `n = passed + failed`; errors are missing data and stay visible beside it.

    Where runs of a commit count together, the trials of all of them are counted. Costs, times and the numbers of trials
    are of this run alone.
    """

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
    """`None` when fewer than k trials were measured, unless that one is the task's metric and the trials that were not
    run could not change it any more: then it is what it would be with them."""
    pass_hat_k: float | None
    score: float | None = None
    """The mean score of its trials; for `confidence_interval` the lower end of its interval."""
    pass_rate: float | None
    """`None` when no trial was measured, and when the task was stopped early: its trials were stopped because of how
    they had passed, so their share would be biased."""
    pass_rate_interval: Interval
    """From 0 to 1 where there is no pass rate."""
    failed_trials: tuple[int, ...] = ()
    error_trials: tuple[int, ...] = ()
    failure: str = ""
    """Why the first failed trial failed."""
    error: str = ""
    """Why the first trial with an error could not be measured; without one why the first was not run for want of money.
    """
    equal_failures: int = 0
    """How many of the failed trials failed for the reason in `failure`."""
    equal_errors: int = 0
    """How many of the trials that could not be measured say what `error` does."""
    violations: tuple[TrialViolation, ...] = ()
    metrics: MeanMetrics
    """Means over the trials in which each was measured."""
    tracked_metrics: tuple[str, ...] = ()
    wall_times: tuple[float, ...] = ()
    """Seconds of each trial in which the time was measured."""
    costs: tuple[float, ...] = ()
    """US dollars of each measured trial whose cost is known."""
    unmeasured_cost: float | None = None
    """US dollars beside `costs`: for trials that could not be measured, and for earlier attempts at the others."""
    models: tuple[str, ...] = ()
    """The models that answered."""
    not_run: int = 0
    """Of the planned trials those that were left out: `errors` does not count them."""
    stopped_early: bool = False
    """Whether they were left out because they could not change the verdict any more, not for want of money."""
    confirming: tuple[bool, ...] = ()
    """Whether each trial beyond k passed, in their order; they were run because the task had failed. No other figure
    counts them."""
    confirming_errors: int = 0
    late_errors: int = 0
    """Attempts, confirming trials' too, that became an error after the agent could know how its trial goes."""
    late_error: str = ""
    """Why the first such trial's did."""
    reused_from: str = ""
    """The run whose trials stand for this one's, where nothing has changed since."""
    needed: int = 1
    """How many trials pass@k requires to pass: one for each run that counts."""

    @property
    def name(self) -> str:
        """`suite/task_id`."""
        return f"{self.suite}/{self.task_id}"

    @property
    def n(self) -> int:
        return self.passed + self.failed

    @property
    def confirming_passed(self) -> int:
        return sum(self.confirming)

    @property
    def confirming_failed(self) -> int:
        return len(self.confirming) - self.confirming_passed

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
    """Planned, and neither measured nor not run."""
    trials_not_run: int = 0
    metric: str
    """`pass@k`, `pass^k`, or both with a comma when its tasks differ."""
    k: str
    """The tasks' k, as in `3` or `3-10`."""
    value: float | None
    interval: Interval | None
    steps: float | None
    """Mean per trial."""
    cost: float | None
    """Sum in US dollars, of trials that could not be measured too; `None` when no trial's cost is known."""
    wall_time_seconds: float
    """Sum over the trials."""


class Measurement(Frozen):
    """Everything that was measured in one run."""

    suites: tuple[SuiteMeasurement, ...]
    tasks: tuple[TaskMeasurement, ...]
    latency_p95_seconds: float | None
    cost: float | None
    isolation: tuple[str, ...]
