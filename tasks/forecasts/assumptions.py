"""What a forecast is made from: what is known of an agent, what follows for each task, and by how much runs differ.

Whole runs differ by a normal shift of the pass rate of all their tasks. The spread is the likeliest one, by the runs of
the baseline. It counts only where it is `LEAST_RATIO` times likelier than none: in a healthy history some spread is
nearly always a little likelier, and a forecast with it has many more false failures than the gate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from statistics import NormalDist, fmean
from typing import Final, Literal, NamedTuple

import numpy as np

from passgate.tasks.history.baseline import ErrorRates
from passgate.tasks.model.baseline import Baseline, BaselineTask, Young
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import BY_TRIALS, EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.stats.estimators import shrunk_rates

Source = Literal["history", "assumed", "file", "burn-in"]
LEAST_RATIO: Final = 150.0
_SPREADS: Final = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1, 0.125, 0.15, 0.2)
_NEAREST: Final = 1e-4  # No rate is nearer to 0 or 1: a task that never failed may fail
_HALVINGS: Final = 40
_QUANTILES: Final = np.array([NormalDist().inv_cdf((place + 0.5) / 200) for place in range(200)])


@dataclass(frozen=True)
class Basis:
    """What a forecast rests on, by `suite/task_id`."""

    baseline: Baseline
    rates: Mapping[str, float]
    """The share of passes in each task's measured trials. For a task that goes by its scores, in its runs."""
    source: Source
    error_rates: Mapping[str, ErrorRates] = field(default_factory=dict)
    spread: float = 0.0  # see `Setting`

    def known(self, name: str) -> BaselineTask | None:
        """Return the baseline of a task; `None` if it is to be assumed from the pass rate."""
        entry = self.baseline.of(name)
        return entry if entry.runs or self.source not in {"assumed", "file"} else None


def measured_spread(tasks: Iterable[EvalTask], baseline: Baseline) -> float:
    """Return by how much the pass rates of whole runs of a baseline differ; 0 where that may be chance."""
    trials = [task for task in tasks if task.metric in BY_TRIALS]
    rates = measured_rates(trials, baseline)
    entries = {task.name: baseline.of(task.name) for task in trials}
    return effect_spread(RunCounts(rates[name], entry.counts) for name, entry in entries.items() if entry.n)


class RunCounts(NamedTuple):
    """A task: its pass rate, and of each run its trials that passed and those that were measured."""

    rate: float
    counts: Mapping[str, tuple[int, int]]


@lru_cache(maxsize=16_384)
def centre(rate: float, spread: float) -> float:
    """Return what shifts are added to, so that the mean is the given rate after the cut at 0 and 1."""
    low, high = float(spread * _QUANTILES[0]), float(1 + spread * _QUANTILES[-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle + spread * _QUANTILES, 0, 1).mean() < rate else (low, middle)
    return high


def effect_spread(tasks: Iterable[RunCounts]) -> float:
    """Return the standard deviation of the shifts of runs that these tasks show; 0 where that may be chance."""
    known = [one for one in tasks if one.counts]
    runs = sorted({run for one in known for run in one.counts})
    if len(runs) < 2:
        return 0.0
    best, spread = max((_likelihood(known, runs, spread), spread) for spread in _SPREADS)
    return spread if best - _likelihood(known, runs, 0.0) >= np.log(LEAST_RATIO) else 0.0


def _likelihood(tasks: Sequence[RunCounts], runs: Sequence[str], spread: float) -> float:
    """Return the logarithm of the likelihood of the runs' counts, up to a constant that all spreads share."""
    counts = np.array([[one.counts.get(run, (0, 0)) for run in runs] for one in tasks], dtype=float)
    passed, n = counts[..., 0], counts[..., 1]
    centres = np.array([centre(one.rate, spread) if spread else one.rate for one in tasks])
    rates = np.clip(centres[:, None] + spread * _QUANTILES, _NEAREST, 1 - _NEAREST)
    by_shift = np.log(rates).T @ passed + np.log1p(-rates).T @ (n - passed)
    largest = by_shift.max(axis=0)
    return float((largest + np.log(np.exp(by_shift - largest).mean(axis=0))).sum())


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
