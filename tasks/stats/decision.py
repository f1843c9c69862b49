"""How k trials decide a task."""

from collections.abc import Sequence
from statistics import fmean
from typing import assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric
from passgate.tasks.stats.scores import mean_lower_bound

_ROUNDING = 1e-9


def decide(
    metric: Metric, *, passed: int, failed: int, planned: int, scores: Sequence[float] = (), threshold: float = 0.8
) -> TaskState:
    """The AND rule (pass^k: all planned trials pass), the OR rule (pass@k: one of them passes), or the scores of the
    measured trials against the threshold: their mean, or the lower end of its interval.

    Trials that are neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    missing = planned - passed - failed
    match metric:
        case Metric.PASS_HAT_K:
            if failed:
                return TaskState.FAILED
            return TaskState.UNDECIDED if missing or not passed else TaskState.PASSED
        case Metric.PASS_AT_K:
            if passed:
                return TaskState.PASSED
            return TaskState.UNDECIDED if missing or not failed else TaskState.FAILED
        case Metric.MEAN:
            worst, best = ([*scores, *[bound] * (planned - len(scores))] for bound in (0.0, 1.0))
            return _between(fmean(worst), fmean(best), threshold) if scores else TaskState.UNDECIDED
        case Metric.CONFIDENCE_INTERVAL:
            if len(scores) < max(planned, 2):
                return TaskState.UNDECIDED
            bound = mean_lower_bound(scores)
            return _between(bound, bound, threshold)
        case _:
            assert_never(metric)


def score_of(metric: Metric, scores: Sequence[float], k: int) -> float | None:
    """The value of a task by its trials' scores: their mean, for `confidence_interval` its lower end; `None` with fewer
    than k scores, or too few for an interval.
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
