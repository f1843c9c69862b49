"""The AND and the OR rule, and rules of scores."""

import pytest

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.stats.decision import decide, decide_by, score_of
from tests.builders import a_task, a_trial, trials_of

PASSED, FAILED, UNDECIDED = TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED


@pytest.mark.parametrize(
    ("passed", "failed", "planned", "all_must", "one_is_enough"),
    [
        (3, 0, 3, PASSED, PASSED),
        (2, 1, 3, FAILED, PASSED),
        (1, 2, 3, FAILED, PASSED),
        (0, 3, 3, FAILED, FAILED),
        (2, 0, 3, UNDECIDED, PASSED),
        (0, 2, 3, FAILED, UNDECIDED),
        (0, 1, 3, FAILED, UNDECIDED),
        (1, 1, 3, FAILED, PASSED),
        (0, 0, 3, UNDECIDED, UNDECIDED),
        (1, 0, 1, PASSED, PASSED),
        (0, 1, 1, FAILED, FAILED),
        (0, 0, 0, UNDECIDED, UNDECIDED),
    ],
)
def test_what_the_trials_say_of_a_task(
    passed: int, failed: int, planned: int, all_must: TaskState, one_is_enough: TaskState
) -> None:
    assert decide(Metric.PASS_HAT_K, passed=passed, failed=failed, planned=planned) is all_must
    assert decide(Metric.PASS_AT_K, passed=passed, failed=failed, planned=planned) is one_is_enough


@pytest.mark.parametrize(
    ("scores", "planned", "by_mean", "by_interval"),
    [
        ([1.0, 1.0, 1.0], 3, PASSED, PASSED),
        ([0.8, 0.8, 0.8], 3, PASSED, PASSED),
        ([0.7, 0.8, 1.0], 3, PASSED, FAILED),
        ([0.5, 0.8, 1.0], 3, FAILED, FAILED),
        ([0.0, 0.5], 3, FAILED, UNDECIDED),
        ([1.0, 1.0], 3, UNDECIDED, UNDECIDED),
        ([1.0] * 9, 10, PASSED, UNDECIDED),
        ([], 3, UNDECIDED, UNDECIDED),
    ],
)
def test_what_the_scores_say_of_a_task(
    scores: list[float], planned: int, by_mean: TaskState, by_interval: TaskState
) -> None:
    def decided(metric: Metric) -> TaskState:
        return decide(metric, passed=0, failed=len(scores), planned=planned, scores=scores, threshold=0.8)

    assert decided(Metric.MEAN) is by_mean
    assert decided(Metric.CONFIDENCE_INTERVAL) is by_interval


def test_the_value_of_a_task_by_its_scores() -> None:
    assert score_of(Metric.MEAN, [0.5, 1.0], 2) == 0.75
    assert score_of(Metric.MEAN, [0.5, 1.0], 3) is None
    assert score_of(Metric.CONFIDENCE_INTERVAL, [0.5, 0.5], 2) == 0.5
    assert score_of(Metric.CONFIDENCE_INTERVAL, [0.5], 1) is None


def test_the_state_of_a_task_by_its_trials() -> None:
    task = a_task()
    states = [decide_by(task, trials_of(task, letters)) for letters in ("ppp", "ppe", "fll", "")]
    assert states == [PASSED, UNDECIDED, FAILED, UNDECIDED]
    confirming = [a_trial(task, number, TrialStatus.FAILED) for number in (3, 4)]
    assert decide_by(task, [*trials_of(task, "ppp"), *confirming]) is PASSED
    assert decide_by(task, [*trials_of(task, "pp"), a_trial(task, 3)]) is UNDECIDED
    task = a_task(metric=Metric.MEAN, k=2, scoring={"rule": "weighted_average", "threshold": 0.7})
    assert decide_by(task, [a_trial(task, number, score=score) for number, score in enumerate((0.6, 0.8))]) is PASSED
