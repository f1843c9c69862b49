"""How k trials decide a task: by the rule of its metric, or by a sequential test.

Wald's sequential probability ratio test of a task's pass rate is ended at k trials. Two hypotheses: the task passes
with the rate `accept`, or with the rate `reject`. After each trial the logarithm of their likelihood ratio, which is
`passed * log(accept / reject) - failed * log((1 - reject) / (1 - accept))`, is held against two bounds: from
log((1 - alpha) / beta) on the task is accepted, down to log(alpha / (1 - beta)) it is rejected (Wald 1945, Ann. Math.
Statist. 16:117). Without an end a task of the rate `accept` is rejected with a chance of at most alpha / (1 - beta),
and one of the rate `reject` is accepted with a chance of at most beta / (1 - alpha).

The k-th trial ends it: then the hypothesis is taken that the ratio is nearer to, by the sign of its logarithm, and
`reject` when it is exactly 0. Both risks may grow by that; `operating_characteristic` says what they are.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log
from statistics import fmean
from typing import NamedTuple, assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import EvalTask, Metric, SequentialTest
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.stats.estimators import mean_lower_bound

_ROUNDING = 1e-9
"""The mean of scores that all are the threshold may lie a hair below it."""


class OperatingCharacteristic(NamedTuple):
    """What a test does with a task of some pass rate."""

    accepts: float
    """The chance that it accepts the task; else it rejects it."""
    expected_trials: float
    """Until it has decided."""


def sprt(outcomes: Sequence[bool | None], rule: SequentialTest, k: int) -> TaskState:
    """What a test of k trials says of a task whose trials passed (`True`), did not, or were not measured (`None`).

    In the order of the trials; those beyond k do not count, and those that are not there are not measured. The answer
    is open while trials that were not measured could turn it. One pass more never lowers the ratio, at no point of its
    course: so the answer is certain when it is the same with all of them failed and with all of them passed.
    """
    counted = [*outcomes[:k], *[None] * (k - len(outcomes))]
    at_worst, at_best = (_course([fill if one is None else one for one in counted], rule) for fill in (False, True))
    return at_worst if at_worst is at_best else TaskState.UNDECIDED


def in_order(outcomes: Iterable[tuple[int, bool]], k: int) -> tuple[bool | None, ...]:
    """Whether each of the first k trials passed, from pairs of its number and that; `None` of those that are not
    among them."""
    known = dict(outcomes)
    return tuple(known.get(trial) for trial in range(k))


def operating_characteristic(rule: SequentialTest, k: int, pass_rate: float) -> OperatingCharacteristic:
    """What a test of k trials does with a task that passes so often: exactly, over all courses that trials may take.

    Trials are independent and all of them measured. Raises `ValueError` unless 0 <= pass_rate <= 1 and k >= 1.
    """
    if not 0 <= pass_rate <= 1:
        raise ValueError("needs 0 <= pass_rate <= 1")
    answers = _answers(rule, k)
    accepts = expected = 0.0
    going_on = {0: 1.0}
    for n in range(k + 1):
        later: dict[int, float] = {}
        for passed, chance in going_on.items():
            answer = answers[n][passed]
            if answer is TaskState.UNDECIDED:
                later[passed] = later.get(passed, 0.0) + chance * (1 - pass_rate)
                later[passed + 1] = later.get(passed + 1, 0.0) + chance * pass_rate
            else:
                expected += n * chance
                accepts += chance * (answer is TaskState.PASSED)
        going_on = later
    return OperatingCharacteristic(accepts, expected)


def _course(outcomes: Sequence[bool], rule: SequentialTest) -> TaskState:
    """The answer after the last of all trials."""
    passed = 0
    for n, outcome in enumerate(outcomes, start=1):
        passed += outcome
        answer = _at(n, passed, rule)
        if answer is not TaskState.UNDECIDED:
            return answer
    return _nearer(len(outcomes), passed, rule)


def _at(n: int, passed: int, rule: SequentialTest) -> TaskState:
    ratio = _log_ratio(n, passed, rule)
    if ratio >= log((1 - rule.alpha) / rule.beta):
        return TaskState.PASSED
    return TaskState.FAILED if ratio <= log(rule.alpha / (1 - rule.beta)) else TaskState.UNDECIDED


def _nearer(n: int, passed: int, rule: SequentialTest) -> TaskState:
    return TaskState.PASSED if _log_ratio(n, passed, rule) > 0 else TaskState.FAILED


def _log_ratio(n: int, passed: int, rule: SequentialTest) -> float:
    # From the counts, not from a running sum: so that equal counts have equal ratios whatever their order.
    return passed * log(rule.accept / rule.reject) - (n - passed) * log((1 - rule.reject) / (1 - rule.accept))


@lru_cache(maxsize=256)
def _answers(rule: SequentialTest, k: int) -> tuple[tuple[TaskState, ...], ...]:
    """Per number of trials up to k and, of these, per number of passes: the answer, open where the rest may turn it.

    Computed backwards: the answer if all trials to come failed, and if all of them passed.
    """
    if k < 1:
        raise ValueError("needs k >= 1")
    at_worst = at_best = [_at_the_end(k, passed, rule) for passed in range(k + 1)]
    answers = [tuple(at_worst)]
    for n in range(k - 1, -1, -1):
        here = [_at(n, passed, rule) for passed in range(n + 1)]
        at_worst = [at_worst[passed] if one is TaskState.UNDECIDED else one for passed, one in enumerate(here)]
        at_best = [at_best[passed + 1] if one is TaskState.UNDECIDED else one for passed, one in enumerate(here)]
        pairs = zip(at_worst, at_best, strict=True)
        answers.append(tuple(worst if worst is best else TaskState.UNDECIDED for worst, best in pairs))
    return tuple(reversed(answers))


def _at_the_end(k: int, passed: int, rule: SequentialTest) -> TaskState:
    answer = _at(k, passed, rule)
    return _nearer(k, passed, rule) if answer is TaskState.UNDECIDED else answer


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
        return sprt(outcomes, sequential, planned)
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
