"""Trials of eval files: the weighted mean of the grades against a threshold, and what binds beside it."""

from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.grading import TrialResult, trial_result
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import EndReason, Message, Transcript
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import a_grade, a_task, a_violation

SAID = Transcript(messages=(Message(role="assistant", content="yes"),), output="yes")


def outcome(
    *scores: float | None,
    weights: tuple[float, ...] = (),
    threshold: float = 0.8,
    transcript: Transcript = SAID,
    **first: Any,
) -> TrialResult:
    """The outcome of a trial whose graders have these scores; `None` is a grader that could not measure."""
    graders = [
        {"type": "contains", "name": f"g{number}", "value": "yes", "weight": weights[number] if weights else 1}
        for number in range(len(scores))
    ]
    task = a_task(graders=graders, scoring={"rule": "weighted_average", "threshold": threshold})
    grades = [_grade(number, score) for number, score in enumerate(scores)]
    grades[0] = grades[0].model_copy(update=first)
    return trial_result(task, transcript, TrialMetrics(), grades)


def _grade(number: int, score: float | None) -> Grade:
    if score is None:
        return a_grade(name=f"g{number}", error="no judge")
    return a_grade(name=f"g{number}", score=score, passed=score >= 0.8, checks=())


def test_the_mean_decides_not_the_single_grader() -> None:
    assert outcome(1.0, 1.0, 1.0, 0.5) == (TrialStatus.PASSED, "", 0.875)


def test_weights_count() -> None:
    assert outcome(1.0, 0.0, weights=(9, 1)) == (TrialStatus.PASSED, "", 0.9)
    assert outcome(1.0, 0.0, weights=(1, 1)).status is TrialStatus.FAILED


def test_a_score_at_the_threshold_passes() -> None:
    assert outcome(0.7, 0.9).status is TrialStatus.PASSED
    assert outcome(0.7, 0.9, threshold=0.81).status is TrialStatus.FAILED


def test_a_borderline_trial_is_called_so_and_fails() -> None:
    found = outcome(1.0, 0.4)
    assert found.status is TrialStatus.FAILED
    assert found.reason == "borderline: score 0.7, expected at least 0.8: g1 0.4 (not passed)"


def test_a_score_below_the_band_is_not_borderline() -> None:
    assert outcome(1.0, 0.0).reason.startswith("score 0.5, expected at least 0.8")


def test_something_required_fails_the_trial_whatever_its_score() -> None:
    found = outcome(0.5, 1.0, 1.0, 1.0, 1.0, fatal="required, but its score is 0.5")
    assert found == (TrialStatus.FAILED, "g0: required, but its score is 0.5", 0.0)


def test_a_violation_fails_the_trial_whatever_its_score() -> None:
    found = outcome(1.0, 1.0, violations=(a_violation(),))
    assert (found.status, found.score) == (TrialStatus.FAILED, 0.0)


def test_a_grader_without_a_score_leaves_the_trial_open() -> None:
    assert outcome(1.0, None) == (TrialStatus.ERROR, "g1: no judge", None)


def test_a_score_that_no_missing_grade_could_lift_is_failed() -> None:
    found = outcome(0.0, None)
    assert found.status is TrialStatus.FAILED
    assert found.reason.startswith("score 0.5, expected at least 0.8: g0 0")


def test_an_agent_that_crashed_has_no_score_to_average() -> None:
    crashed = SAID.model_copy(update={"end": EndReason.CRASHED, "detail": "exit code 1"})
    assert outcome(1.0, transcript=crashed) == (TrialStatus.FAILED, "the agent crashed: exit code 1", 0.0)


def test_weights_of_0_alone_say_nothing() -> None:
    with pytest.raises(MeasurementError, match="weight 0"):
        outcome(1.0, weights=(0,))


def test_a_grader_of_the_suites_binds_in_any_company() -> None:
    task = a_task(
        graders=[
            {"type": "contains", "value": "yes", "weight": 99},
            {"type": "output_check", "contains": ["no"]},
        ],
        scoring={"rule": "weighted_average"},
    )
    grades = [a_grade(name="contains"), a_grade(passed=False)]
    assert trial_result(task, SAID, TrialMetrics(), grades).status is TrialStatus.FAILED


def test_where_all_must_pass_the_score_is_1_or_0() -> None:
    task = a_task()
    assert trial_result(task, SAID, TrialMetrics(), [a_grade()]).score == 1.0
    assert trial_result(task, SAID, TrialMetrics(), [a_grade(passed=False)]).score == 0.0
