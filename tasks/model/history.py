"""What the history says: its runs, how two of them differ, the trend of each suite, changes, flaky tasks."""

from datetime import datetime
from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import GateName, Metric, Suite
from passgate.tasks.model.verdict import Decision


class Quantity(StrEnum):
    """A quantity of a task or suite that a trend follows."""

    PASS_RATE = "pass rate"
    LATENCY = "latency"
    COST = "cost"


class RunStamp(Frozen):
    """A stored run: what it ran, and when."""

    run_id: str
    day: str
    """UTC, as in `2026-01-31`."""
    git_commit: str = ""
    """Empty outside a repository."""


class TrendChange(Frozen):
    """A lasting change that chance does not explain."""

    quantity: Quantity
    suite: Suite
    tasks: tuple[str, ...] = ()
    """The tasks that carry it, the one with the largest share first; empty where no few of the suite's tasks do."""
    is_worse: bool
    before: float
    """A share of trials, seconds, or US dollars per trial; of latency and cost the geometric mean."""
    after: float
    last_before: RunStamp
    first_after: RunStamp
    until: RunStamp | None = None
    """The last run of a slow change; `None` of a sudden one."""
    told_by: str
    """The run after which it could first be seen."""
    also_changed: tuple[str, ...] = ()
    """What else differs between the two runs, as in `model: small -> large`."""


class FlakyTask(Frozen):
    """A task of which trials of the same run end differently."""

    suite: Suite
    task_id: str
    disagreement: float
    """The share of pairs of trials of the same run that end differently."""
    passed: int
    n: int


class _SuiteFigures(Frozen):
    """A suite in one run or more; the figures of several runs are their means."""

    suite: Suite
    tasks: int
    """Of the newest run."""
    trials_passed: int
    trials_measured: int
    trials_error: int
    value: float | None
    """The mean over the tasks of each task's own metric, from 0 to 1; `None` when too little was measured."""
    low: float | None
    """Lower end of the 95 % interval of `value`."""
    high: float | None
    cost: float | None
    """US dollars per run of all trials, confirming ones and the judge too; `None` when none is known."""
    latency_p50_seconds: float | None = None
    latency_p95_seconds: float | None
    tool_call_accuracy: float | None = None
    """The mean over the tasks that have it of the mean over their trials, like the next ones."""
    loop_rate: float | None = None
    retry_rate: float | None = None
    policy_adherence: float | None = None
    injection_success_rate: float | None = None


class TrendPoint(_SuiteFigures):
    """One suite of one stored run."""

    run_id: str
    gate: GateName
    started_at: datetime
    """UTC."""
    agent: str
    ended_at: datetime | None = None
    """When the agent ended in the last trial of the suite, UTC."""
    git_commit: str = ""
    passgate_version: str = ""


class TrendPeriod(_SuiteFigures):
    """A suite in the runs of a period."""

    label: str
    """A run's id, a day, a week as in `2026-W05`, a version of passgate, or `last 7 days`."""
    runs: int


class Trend(Frozen):
    """The whole of what `passgate trend` shows."""

    gate: GateName
    agent: str
    runs: int
    first: RunStamp
    last: RunStamp
    changes: tuple[TrendChange, ...] = ()
    """The newest first."""
    last_week: tuple[TrendPeriod, ...] = ()
    """Each suite in the 7 days that end with the newest run."""
    week_before: tuple[TrendPeriod, ...] = ()
    flaky: tuple[FlakyTask, ...] = ()
    """In the newest 30 runs, the flakiest first."""
    seconds_per_verdict: float | None = None
    """From the start of a run to its last trial's end, the median of the last 7 days."""
    cost_per_verdict: float | None = None
    """US dollars per run in the last 7 days."""
    periods: tuple[TrendPeriod, ...] = ()
    """Each suite in each period, the oldest first."""
    points: tuple[TrendPoint, ...] = ()
    """Each suite in each run, the oldest first."""
    since: str = ""
    """The first day of the last week."""
    not_shown: tuple[str, ...] = ()
    """Which other gates and agents the history has."""
    false_alarms: float = 0.1
    """The expected number of changes in 365 runs of which nothing has changed."""


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
