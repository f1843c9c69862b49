"""What a forecast is made from: what is known of an agent, and what follows for each task."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Literal

from passgate.tasks.forecasts.run_shifts import RunCounts, spread_of
from passgate.tasks.history.baseline import ErrorRates
from passgate.tasks.model.baseline import Baseline, BaselineTask, Young
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import BY_TRIALS, EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.stats.estimators import shrunk_rates
from passgate.tasks.stats.ratios import Noise, noise_of

Source = Literal["history", "assumed", "file", "burn-in"]


@dataclass(frozen=True)
class Basis:
    """What a forecast rests on, by `suite/task_id`."""

    baseline: Baseline
    rates: Mapping[str, float]
    """The share of passes in each task's measured trials. For a task that goes by its scores, in its runs."""
    source: Source
    error_rates: Mapping[str, ErrorRates] = field(default_factory=dict)
    noises: Mapping[Rule, Noise] = field(default_factory=dict)  # of latency and of cost
    spread: float = 0.0  # see `Setting`

    def known(self, name: str) -> BaselineTask | None:
        """Return the baseline of a task; `None` if it is to be assumed from the pass rate."""
        entry = self.baseline.of(name)
        return entry if entry.runs or self.source not in {"assumed", "file"} else None


def noises_of(baseline: Baseline) -> dict[Rule, Noise]:
    """Return the noise of latency and of cost in the runs of a baseline."""
    return {
        Rule.LATENCY: noise_of({name: task.wall_times for name, task in baseline.tasks.items()}),
        Rule.COST: noise_of({name: task.costs for name, task in baseline.tasks.items()}),
    }


def measured_spread(tasks: Iterable[EvalTask], baseline: Baseline) -> float:
    """By how much the pass rates of whole runs of a baseline differ; 0 where that may be chance."""
    trials = [task for task in tasks if task.metric in BY_TRIALS]
    rates = measured_rates(trials, baseline)
    entries = {task.name: baseline.of(task.name) for task in trials}
    return spread_of(RunCounts(rates[name], entry.counts) for name, entry in entries.items() if entry.n)


def measured_rates(tasks: Iterable[EvalTask], baseline: Baseline) -> dict[str, float]:
    """Return the pass rate of each task at the baseline, drawn towards that of all (`shrunk_rates`). It is a share of
    trials, or of runs for a task that goes by its scores. A task without any has the mean rate; empty if none has any.
    """
    # Shares of trials and of runs are different quantities, so each is drawn towards its own mean.
    by_kind: dict[bool, dict[str, tuple[int, int]]] = {True: {}, False: {}}
    for task in tasks:
        entry, by_trials = baseline.of(task.name), task.metric in BY_TRIALS
        counts = (entry.passed, entry.n) if by_trials else (entry.runs_green, len(entry.runs))
        by_kind[by_trials][task.name] = counts
    rates: dict[str, float] = {}
    for counts_of in by_kind.values():
        if any(n for _, n in counts_of.values()):
            rates |= zip(counts_of, shrunk_rates(list(counts_of.values())), strict=True)
    if not rates:
        return {}
    mean = fmean(rates.values())
    return {name: rates.get(name, mean) for counts_of in by_kind.values() for name in counts_of}


@dataclass(frozen=True)
class TaskAssumptions:
    """One task and how the agent does it."""

    failed: TaskMeasurement  # the task as it is measured when it has failed
    rate: float  # the share of its measured trials that pass
    errors: float = 0.0  # the share of its trials that cannot be measured
    violations: Mapping[Rule, float] = field(default_factory=dict)  # the share of measured trials, by rule
    known: BaselineTask | None = None  # `None`: what runs of such an agent would give
    safety: bool = False  # it guards safety, so no quarantine is for it

    @property
    def name(self) -> str:
        """`suite/task_id`."""
        return self.failed.name

    def violated(self, policy: GatePolicy) -> float:
        """Return the share of its measured trials that violate a rule which blocks; such a trial has not passed."""
        vetoes = sum(share for rule, share in self.violations.items() if rule in policy.blocks_on)
        return min(vetoes, 1 - self.rate)

    def with_k(self, k: int) -> "TaskAssumptions":
        """Return the same task with another number of trials."""
        return replace(self, failed=self.failed.model_copy(update={"k": k, "planned": k, "failed": k}))


@dataclass(frozen=True)
class Setting:
    """A plan and its tasks as the forecast sees them. A change of the policy makes another setting."""

    plan: Plan
    tasks: tuple[TaskAssumptions, ...]
    spread: float = 0.0  # the standard deviation of the pass rates between whole runs

    @property
    def branch(self) -> str:
        return self.plan.policy.baseline.branch

    @property
    def young(self) -> Young:
        """Return what a failed task does while its baseline is young."""
        return self.plan.policy.baseline.young


def trials_of(task: EvalTask, status: TrialStatus, count: int | None = None) -> list[Trial]:
    """Return the first trials of a task, all of one status; all k without a `count`."""
    return [
        Trial(
            suite=task.suite,
            task_id=task.task_id,
            trial=number,
            k=task.k,
            metric=task.metric,
            status=status,
            score=float(status is TrialStatus.PASSED),
            started_at=datetime.now(UTC),
            task_digest=task.task_digest,
            grader_digest=task.grader_digest,
            file=task.file,
            line=task.line,
        )
        for number in range(task.k if count is None else count)
    ]
