"""How k trials decide a task by the rule of its metric."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.stats.estimators import mean_lower_bound

_ROUNDING = 1e-9  # the mean of scores that all equal the threshold may come out a hair below it


def decide(
    metric: Metric,
    *,
    passed: int,
    failed: int,
    planned: int,
    scores: Sequence[float] = (),
    threshold: float = 0.8,
) -> TaskState:
    """Return the state of a task by the rule of its metric. pass^k is the AND rule: all planned trials pass. pass@k is
    the OR rule: one of them passes. The other two compare the scores of the measured trials with the threshold: their
    mean, or the lower end of its interval.

    Trials that neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    missing = planned - passed - failed
    match metric:
        case Metric.PASS_HAT_K:
            if failed:
                return TaskState.FAILED
            # Never a pass without a trial that passed, not even where none was planned.
            return TaskState.UNDECIDED if missing or not passed else TaskState.PASSED
        case Metric.PASS_AT_K:
            if passed:
                return TaskState.PASSED
            return TaskState.UNDECIDED if missing or not failed else TaskState.FAILED
        case Metric.MEAN:
            # A score lies in 0..1, so these are the least and the greatest mean that the missing trials can make.
            worst, best = ([*scores, *[bound] * (planned - len(scores))] for bound in (0.0, 1.0))
            return _between(fmean(worst), fmean(best), threshold) if scores else TaskState.UNDECIDED
        case Metric.CONFIDENCE_INTERVAL:
            # A missing score could move the bound to either side, and a single score has no interval.
            if len(scores) < max(planned, 2):
                return TaskState.UNDECIDED
            bound = mean_lower_bound(scores)
            return _between(bound, bound, threshold)
        case _:
            assert_never(metric)


def decide_by(task: EvalTask, trials: Iterable[Trial]) -> TaskState:
    """Return the state of a task by its first k trials, as `decide`; trials that were not measured are missing."""
    measured = [trial for trial in trials if trial.status in MEASURED and trial.trial < task.k]
    passed = sum(trial.status is TrialStatus.PASSED for trial in measured)
    return decide(
        task.metric,
        passed=passed,
        failed=len(measured) - passed,
        planned=task.k,
        scores=[trial.score for trial in measured if trial.score is not None],
        threshold=task.scoring.threshold,
    )


def score_of(metric: Metric, scores: Sequence[float], k: int) -> float | None:
    """Return the value of a task by its trials' scores: their mean, or the lower end of its interval for
    `confidence_interval`. `None` with fewer than k scores, or too few for an interval.
    """
    if len(scores) < k:
        return None
    if metric is Metric.CONFIDENCE_INTERVAL:
        return mean_lower_bound(scores) if len(scores) > 1 else None
    return fmean(scores)


def _between(least: float, most: float, threshold: float) -> TaskState:
    if least >= threshold - _ROUNDING:
        return TaskState.PASSED
    return TaskState.FAILED if most < threshold - _ROUNDING else TaskState.UNDECIDED
