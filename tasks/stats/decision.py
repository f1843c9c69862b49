"""How k trials decide a task: by the rule of its metric, or by a sequential test.

The sequential test is Wald's probability ratio test of a task's pass rate, cut off after k trials. It has two
hypotheses: the task passes with the rate `accept`, or with the rate `reject`. After each trial it compares the
logarithm of their likelihood ratio, `passed * log(accept / reject) - failed * log((1 - reject) / (1 - accept))`, with
two bounds. At log((1 - alpha) / beta) or above it accepts the task; at log(alpha / (1 - beta)) or below it rejects it
(Wald 1945, Ann. Math. Statist. 16:117). Without the cut-off it rejects a task of the rate `accept` with a chance of at
most alpha / (1 - beta), and accepts one of the rate `reject` with a chance of at most beta / (1 - alpha).

After the k-th trial the sign of the logarithm decides: positive accepts, negative or 0 rejects. This cut-off may raise
both risks; `operating_characteristic` computes what they are.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import log
from statistics import fmean
from typing import NamedTuple, assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import EvalTask, Metric, SequentialTest
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.stats.estimators import mean_lower_bound

_ROUNDING = 1e-9  # the mean of scores that all equal the threshold may come out a hair below it


class OperatingCharacteristic(NamedTuple):
    """What a test does with a task of some pass rate: how likely it accepts the task (otherwise it rejects it), and how
    many trials it needs on average.
    """

    accepts: float
    expected_trials: float


def sprt(outcomes: Sequence[bool | None], rule: SequentialTest, k: int) -> TaskState:
    """What a test of k trials says of a task, from its trials in their order: whether each passed, `None` where it was
    not measured. Trials beyond k do not count; trials that are absent count as not measured.

    The answer is undecided while trials that were not measured could turn it.
    """
    counted = [*outcomes[:k], *[None] * (k - len(outcomes))]
    # One pass more never lowers the ratio, at no point of the course. So these two extremes bound every other course.
    at_worst, at_best = (_course([fill if one is None else one for one in counted], rule) for fill in (False, True))
    return at_worst if at_worst is at_best else TaskState.UNDECIDED


def in_order(outcomes: Iterable[tuple[int, bool]], k: int) -> tuple[bool | None, ...]:
    """Whether each of the first k trials passed, from pairs of a trial's number and whether it passed; `None` for the
    trials without a pair.
    """
    known = dict(outcomes)
    return tuple(known.get(trial) for trial in range(k))


def operating_characteristic(rule: SequentialTest, k: int, pass_rate: float) -> OperatingCharacteristic:
    """What a test of k trials does with a task of a pass rate: exactly, over all courses that its trials may take.

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
    """The answer to a whole course of trials: the first that is not open."""
    answer = TaskState.FAILED
    for n, passed in enumerate(accumulate(outcomes), start=1):
        answer = _answer(n, passed, rule, len(outcomes))
        if answer is not TaskState.UNDECIDED:
            break
    return answer


def _answer(n: int, passed: int, rule: SequentialTest, k: int) -> TaskState:
    # From the counts, not from a running sum, so that equal counts have equal ratios whatever their order.
    ratio = passed * log(rule.accept / rule.reject) - (n - passed) * log((1 - rule.reject) / (1 - rule.accept))
    if ratio >= log((1 - rule.alpha) / rule.beta):
        return TaskState.PASSED
    if ratio <= log(rule.alpha / (1 - rule.beta)):
        return TaskState.FAILED
    if n < k:
        return TaskState.UNDECIDED
    return TaskState.PASSED if ratio > 0 else TaskState.FAILED


@lru_cache(maxsize=256)
def _answers(rule: SequentialTest, k: int) -> tuple[tuple[TaskState, ...], ...]:
    """The answer by the number of trials up to k and, within that, by the number of passes; open where the remaining
    trials may turn it.
    """
    if k < 1:
        raise ValueError("needs k >= 1")
    # Computed backwards: the answer if all trials to come failed, and if all of them passed.
    at_worst = at_best = [_answer(k, passed, rule, k) for passed in range(k + 1)]
    answers = [tuple(at_worst)]
    for n in range(k - 1, -1, -1):
        here = [_answer(n, passed, rule, k) for passed in range(n + 1)]
        at_worst = [at_worst[passed] if one is TaskState.UNDECIDED else one for passed, one in enumerate(here)]
        at_best = [at_best[passed + 1] if one is TaskState.UNDECIDED else one for passed, one in enumerate(here)]
        pairs = zip(at_worst, at_best, strict=True)
        answers.append(tuple(worst if worst is best else TaskState.UNDECIDED for worst, best in pairs))
    return tuple(reversed(answers))


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
    """The state of a task by the rule of its metric. pass^k is the AND rule: all planned trials pass. pass@k is the OR
    rule: one of them passes. The other two compare the scores of the measured trials with the threshold: their mean,
    or the lower end of its interval.

    A `sequential` test replaces all of these. It decides by the `outcomes` of the trials in their order: whether each
    passed, `None` where it was not measured (see `sprt`).

    Trials that neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    if sequential is not None:
        return sprt(outcomes, sequential, planned)
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
    """The state of a task by its first k trials, as `decide`; trials that were not measured are missing."""
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
    """The value of a task by its trials' scores: their mean, or the lower end of its interval for
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
