"""The status of a trial: what is certain goes first."""

from pathlib import Path

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.grading import grade_trial, trial_result
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, Transcript
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from passgate.tasks.sandboxes.workbench import Workbench
from tests.builders import a_grade, a_task, a_violation

SAID_YES = Transcript(messages=(Message(role="assistant", content="yes"),), output="yes")


def status(
    *grades: Grade,
    transcript: Transcript = SAID_YES,
    metrics: TrialMetrics | None = None,
    budgets: Budgets | None = None,
) -> tuple[TrialStatus, str]:
    return trial_result(a_task(budgets=budgets or Budgets()), transcript, metrics or TrialMetrics(), grades)[:2]


def ended(end: EndReason, detail: str = "") -> Transcript:
    return SAID_YES.model_copy(update={"end": end, "detail": detail})


def test_every_grader_satisfied_is_passed() -> None:
    assert status(a_grade(), a_grade(name="style")) == (TrialStatus.PASSED, "")


def test_one_grader_not_satisfied_is_failed_and_says_why() -> None:
    wrong = a_grade(passed=False, checks=(Check(passed=True, message="ok"), Check(passed=False, message="no 'yes'")))
    assert status(a_grade(name="style"), wrong) == (TrialStatus.FAILED, "answer: no 'yes'")


def test_more_failed_checks_are_counted() -> None:
    wrong = a_grade(passed=False, checks=tuple(Check(passed=False, message=f"no {word}") for word in ("a", "b", "c")))
    assert status(wrong) == (TrialStatus.FAILED, "answer: no a (and 2 more)")


def test_a_low_score_without_a_failed_check_is_failed() -> None:
    assert status(a_grade(passed=False, checks=())) == (TrialStatus.FAILED, "answer: not passed")


def test_a_grader_that_could_not_measure_is_an_error() -> None:
    assert status(a_grade(), a_grade(error="no judge")) == (TrialStatus.ERROR, "answer: no judge")


def test_a_certain_fail_goes_before_an_error() -> None:
    found, reason = status(a_grade(error="no judge"), a_grade(name="style", passed=False))
    assert found is TrialStatus.FAILED
    assert reason.startswith("style:")


def test_a_violation_beside_an_error_is_a_fail() -> None:
    violating = a_grade(name="policy", passed=False, checks=(), violations=(a_violation(),))
    assert status(a_grade(error="no judge"), violating)[0] is TrialStatus.FAILED


def test_a_crash_is_a_fail_whatever_the_graders_say() -> None:
    assert status(a_grade(), transcript=ended(EndReason.CRASHED, "exit code 1: oh")) == (
        TrialStatus.FAILED,
        "the agent crashed: exit code 1: oh",
    )
    assert status(a_grade(error="x"), transcript=ended(EndReason.CRASHED))[0] is TrialStatus.FAILED


def test_an_agent_that_printed_too_much_has_failed() -> None:
    found, reason = status(a_grade(), transcript=ended(EndReason.OUTPUT_LIMIT))
    assert (found, reason) == (TrialStatus.FAILED, "passgate ended the agent because it printed too much")


def test_time_that_is_up_is_a_fail() -> None:
    found, reason = status(a_grade(), transcript=ended(EndReason.TIMED_OUT), budgets=Budgets(max_seconds=5))
    assert (found, reason) == (TrialStatus.FAILED, "over budget: max_seconds is 5 and the agent was still running")


def test_an_overrun_is_a_fail_though_the_graders_are_satisfied() -> None:
    found, reason = status(a_grade(), metrics=TrialMetrics(steps=9), budgets=Budgets(max_steps=8))
    assert (found, reason) == (TrialStatus.FAILED, "over budget: max_steps is 8 and the trial used 9")


def test_an_unknown_cost_cannot_be_measured() -> None:
    with pytest.raises(MeasurementError, match="cost"):
        status(a_grade(), budgets=Budgets(max_cost_usd=1))


@pytest.mark.parametrize(
    ("grade", "transcript"),
    [
        pytest.param(a_grade(passed=False), SAID_YES, id="a wrong answer"),
        pytest.param(a_grade(passed=False, violations=(a_violation(),)), SAID_YES, id="a violation"),
        pytest.param(a_grade(), ended(EndReason.CRASHED), id="a crash"),
    ],
)
def test_an_unknown_cost_hides_no_certain_fail(grade: Grade, transcript: Transcript) -> None:
    assert status(grade, transcript=transcript, budgets=Budgets(max_cost_usd=1))[0] is TrialStatus.FAILED


def test_every_reason_is_named() -> None:
    _, reason = status(
        a_grade(passed=False, checks=()),
        transcript=ended(EndReason.CRASHED, "oh"),
        metrics=TrialMetrics(steps=9),
        budgets=Budgets(max_steps=8),
    )
    assert reason.split("; ") == [
        "the agent crashed: oh",
        "over budget: max_steps is 8 and the trial used 9",
        "answer: not passed",
    ]


async def test_every_grader_is_asked_in_order(tmp_path: Path) -> None:
    graders = [{"type": "output_check", "name": name, "contains": [name]} for name in ("yes", "no", "why")]
    task = a_task(graders=graders)
    with Workbench(tmp_path, processes=1) as workbench:
        async with workbench.sandbox(task) as sandbox:
            grades = await grade_trial(
                Evidence(
                    task=task,
                    transcript=SAID_YES,
                    metrics=TrialMetrics(),
                    sandbox=sandbox,
                    suites_folder=tmp_path,
                    judge=None,
                )
            )
    assert [(grade.name, grade.passed) for grade in grades] == [("yes", True), ("no", False), ("why", False)]
