"""How k trials decide a task."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.sequential import SequentialTest
from passgate.tasks.model.task import EvalTask, Metric
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.stats.scores import mean_lower_bound
from passgate.tasks.stats.sequential import Answer, in_order, sprt

_ROUNDING = 1e-9
_STATES = {Answer.ACCEPT: TaskState.PASSED, Answer.REJECT: TaskState.FAILED, Answer.OPEN: TaskState.UNDECIDED}


def decide(
    metric: Metric,
    *,
    passed: int,
    failed: int,
    planned: int,
    scores: Sequence[float] = (),
    threshold: float = 0.8,
    sequential: SequentialTest | None = None,
    outcomes: Sequence[bool | None] = (),
) -> TaskState:
    """The AND rule (pass^k: all planned trials pass), the OR rule (pass@k: one of them passes), or the scores of the
    measured trials against the threshold: their mean, or the lower end of its interval.

    With a `sequential` test that decides in place of them all, by the `outcomes` of the trials in their order: whether
    each passed, `None` where it was not measured (see `sprt`).

    Trials that are neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    if sequential is not None:
        return _STATES[sprt(outcomes, sequential, planned)]
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


def decide_by(task: EvalTask, trials: Iterable[Trial]) -> TaskState:
    """What the first k trials of a task say of it, as `decide`; those that were not measured are missing."""
    measured = [trial for trial in trials if trial.status in MEASURED and trial.trial < task.k]
    outcomes = [(trial.trial, trial.status is TrialStatus.PASSED) for trial in measured]
    passed = sum(outcome for _, outcome in outcomes)
    return decide(
        task.metric,
        passed=passed,
        failed=len(outcomes) - passed,
        planned=task.k,
        scores=[trial.score for trial in measured if trial.score is not None],
        threshold=task.scoring.threshold,
        sequential=task.sequential,
        outcomes=in_order(outcomes, task.k),
    )


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
