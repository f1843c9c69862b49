"""The status and the score of a trial: what is certain goes first; and the metrics that its grades tell."""

from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders import TrialResult, add_grade_metrics, grade_function, grade_trial, trial_result
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import GRADER_TYPES
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import a_grade, a_task, a_violation
from tests.unit.graders.trials import Graded, MakeEvidence, said

SAID_YES = said("yes")
PASSED, FAILED, ERROR = TrialStatus.PASSED, TrialStatus.FAILED, TrialStatus.ERROR


def checks(*messages: str, ok: str = "ok") -> tuple[Check, ...]:
    return tuple(Check(passed=message == ok, message=message) for message in messages)


def ended(end: EndReason, detail: str = "") -> Transcript:
    return SAID_YES.model_copy(update={"end": end, "detail": detail})


WRONG = a_grade(passed=False, checks=())
NO_JUDGE = a_grade(error="no judge")
VIOLATING = a_grade(name="policy", passed=False, checks=(), violations=(a_violation(),))
CRASHED = ended(EndReason.CRASHED, "oh")
OVERRUN = "over budget: max_steps is 8 and the trial used 9"
TOO_MUCH_OUTPUT = "passgate ended the agent because it printed too much"
RAN = "the agent was still running"
OUT_OF_TIME = f"over budget: max_seconds is 5 and {RAN}"
LOCKED = ended(EndReason.TIMED_OUT).model_copy(update={"printed": "waiting for the lock\n"})
WAITED = "the agent's time was up, and it had printed last: waiting for the lock"


@pytest.mark.parametrize(
    ("grades", "transcript", "budgets", "status", "reason"),
    [
        ([a_grade(), a_grade(name="style")], SAID_YES, {}, PASSED, ""),
        ([a_grade(name="style"), a_grade(passed=False, checks=checks("ok", "no"))], SAID_YES, {}, FAILED, "answer: no"),
        ([a_grade(passed=False, checks=checks("a", "b", "c"))], SAID_YES, {}, FAILED, "answer: a (and 2 more)"),
        ([WRONG], SAID_YES, {}, FAILED, "answer: not passed"),
        ([a_grade(), NO_JUDGE], SAID_YES, {}, ERROR, "answer: no judge"),
        ([NO_JUDGE, WRONG.model_copy(update={"name": "style"})], SAID_YES, {}, FAILED, "style: not passed"),
        ([a_grade()], CRASHED, {}, FAILED, "the agent crashed: oh"),
        ([NO_JUDGE], CRASHED, {}, FAILED, "the agent crashed: oh"),
        ([a_grade()], ended(EndReason.OUTPUT_LIMIT), {}, FAILED, TOO_MUCH_OUTPUT),
        ([a_grade()], ended(EndReason.TIMED_OUT), {"max_seconds": 5}, FAILED, OUT_OF_TIME),
        ([a_grade()], LOCKED, {}, FAILED, f"{WAITED}; over budget: {RAN}"),
        ([a_grade()], SAID_YES, {"max_steps": 8}, FAILED, OVERRUN),
        ([WRONG], CRASHED, {"max_steps": 8}, FAILED, f"the agent crashed: oh; {OVERRUN}; answer: not passed"),
        ([WRONG], SAID_YES, {"max_cost_usd": 1}, FAILED, "answer: not passed"),
        ([VIOLATING], SAID_YES, {"max_cost_usd": 1}, FAILED, "policy: not passed"),
        ([a_grade()], CRASHED, {"max_cost_usd": 1}, FAILED, "the agent crashed: oh"),
    ],
    ids=[
        *["every grader is satisfied", "one is not", "more failed checks are counted", "a low score without a check"],
        *["an error", "a fail beside an error", "a crash", "a crash beside an error"],
        *["too much output", "time is up", "time is up for an agent that says why", "an overrun"],
        *["every reason is named", "a wrong answer of unknown cost"],
        *["a violation of unknown cost", "a crash of unknown cost"],
    ],
)
def test_the_status_of_a_trial(
    grades: list[Grade], transcript: Transcript, budgets: dict[str, Any], status: TrialStatus, reason: str
) -> None:
    found = trial_result(a_task(budgets=Budgets(**budgets)), transcript, TrialMetrics(steps=9), grades)
    assert (found.status, UNMASKED.render(found.reason)) == (status, reason)


def test_an_unknown_cost_cannot_be_measured() -> None:
    with pytest.raises(MeasurementError, match="cost"):
        trial_result(a_task(budgets=Budgets(max_cost_usd=1)), SAID_YES, TrialMetrics(), [a_grade()])


async def test_every_grader_is_asked_in_order(make_evidence: MakeEvidence) -> None:
    graders = [{"type": "output_check", "name": name, "contains": [name]} for name in ("yes", "no", "why")]
    grades = await grade_trial(make_evidence(transcript=SAID_YES, graders=a_task(graders=graders).graders))
    assert [(grade.name, grade.passed) for grade in grades] == [("yes", True), ("no", False), ("why", False)]


AVERAGE = {"rule": "weighted_average", "threshold": 0.8}


def averaged(
    *scores: float | None,
    weights: tuple[float, ...] = (),
    threshold: float = 0.8,
    transcript: Transcript = SAID_YES,
    **first: Any,
) -> TrialResult:
    """The result of a trial whose graders have these scores; `None` is a grader that could not measure."""
    graders = [
        {"type": "contains", "name": f"g{number}", "value": "yes", "weight": weights[number] if weights else 1}
        for number in range(len(scores))
    ]
    grades = [
        a_grade(name=f"g{number}", error="no judge")
        if score is None
        else a_grade(name=f"g{number}", score=score, passed=score >= 0.8, checks=())
        for number, score in enumerate(scores)
    ]
    grades[0] = grades[0].model_copy(update=first)
    task = a_task(graders=graders, scoring=AVERAGE | {"threshold": threshold})
    return trial_result(task, transcript, TrialMetrics(), grades)


@pytest.mark.parametrize(
    ("found", "status", "score", "reason"),
    [
        (averaged(1.0, 1.0, 1.0, 0.5), PASSED, 0.875, ""),
        (averaged(1.0, 0.0, weights=(9, 1)), PASSED, 0.9, ""),
        (averaged(1.0, 0.0, weights=(1, 1)), FAILED, 0.5, "score 0.5, expected at least 0.8"),
        (averaged(0.7, 0.9), PASSED, 0.8, ""),
        (averaged(0.7, 0.9, threshold=0.81), FAILED, 0.8, "borderline: score 0.8, expected at least 0.81"),
        (averaged(1.0, 0.4), FAILED, 0.7, "borderline: score 0.7, expected at least 0.8: g1 0.4 (not passed)"),
        (averaged(0.5, 1.0, 1.0, 1.0, 1.0, fatal="required"), FAILED, 0.0, "g0: required"),
        (averaged(1.0, 1.0, violations=(a_violation(),)), FAILED, 0.0, "g0: "),
        (averaged(1.0, None), ERROR, None, "g1: no judge"),
        (averaged(0.0, None), FAILED, 0.0, "score 0.5, expected at least 0.8: g0 0"),
        (averaged(1.0, transcript=CRASHED), FAILED, 0.0, "the agent crashed: oh"),
    ],
    ids=[
        *["the mean decides", "weights count", "a mean too low", "at the threshold", "below it", "borderline"],
        *["something required", "a violation", "no score", "no missing score could lift it", "a crash"],
    ],
)
def test_the_weighted_mean_against_a_threshold_and_what_binds_beside_it(
    found: TrialResult, status: TrialStatus, score: float | None, reason: str
) -> None:
    assert (found.status, found.score) == (status, pytest.approx(score))
    assert UNMASKED.render(found.reason).startswith(reason)
    assert bool(found.reason) is (status is not PASSED)


def test_weights_of_0_alone_say_nothing() -> None:
    with pytest.raises(MeasurementError, match="weight 0"):
        averaged(1.0, weights=(0,))


def test_a_grader_of_the_suites_binds_in_any_company() -> None:
    graders = [{"type": "contains", "value": "yes", "weight": 99}, {"type": "output_check", "contains": ["no"]}]
    grades = [a_grade(name="contains"), WRONG]
    assert trial_result(a_task(graders=graders, scoring=AVERAGE), SAID_YES, TrialMetrics(), grades).status is FAILED


@pytest.mark.parametrize(("grade", "score"), [(a_grade(), 1.0), (WRONG, 0.0)])
def test_where_all_must_pass_the_score_is_1_or_0(grade: Grade, score: float) -> None:
    assert trial_result(a_task(), SAID_YES, TrialMetrics(), [grade]).score == score


TOOL_CALLS = {"type": "tool_calls", "forbidden": ["delete"]}
POLICY = {"type": "policy_check", "deny_tools": ["delete", "drop"]}
ONLY_REQUIRED = {"type": "tool_calls", "required": ["read"]}
SAYS_YES = {"type": "output_check", "contains": ["yes"]}
HALF = a_grade(type="tool_calls", score=0.5)
WHOLE = a_grade(type="tool_trajectory", score=1.0)
NESTED = a_grade(type="composite", score=0.1, members=(HALF, a_grade(type="composite", members=(WHOLE,))))
UNMEASURED = a_grade(type="policy_check", score=None, error="no transcript")


def policy(*kept: str, **fields: Any) -> Grade:
    return a_grade(type="policy_check", checks=checks(*kept), **fields)


def violating(kind: str) -> Grade:
    return a_grade(type=kind, checks=checks("ok"), violations=(a_violation(),))


@pytest.mark.parametrize(
    ("graders", "grades", "accuracy", "adherence", "injection"),
    [
        ([ONLY_REQUIRED], [HALF, WHOLE, a_grade(type="output_check", score=0.0)], 0.75, None, None),
        ([ONLY_REQUIRED], [NESTED], 0.75, None, None),
        ([POLICY], [policy("ok", "no"), policy("ok", "ok", "ok")], None, 0.8, 0.0),
        ([TOOL_CALLS], [HALF], 0.5, None, 0.0),
        ([TOOL_CALLS], [violating("tool_calls")], 1.0, None, 1.0),
        ([POLICY], [violating("policy_check")], None, 1.0, 1.0),
        (
            [{"type": "composite", "assertions": [POLICY]}],
            [a_grade(type="composite", members=(violating("policy_check"),))],
            None,
            1.0,
            1.0,
        ),
        ([POLICY, TOOL_CALLS], [UNMEASURED, UNMEASURED.model_copy(update={"type": "tool_calls"})], None, None, None),
        ([POLICY, POLICY], [UNMEASURED, violating("policy_check")], None, None, 1.0),
        ([SAYS_YES], [a_grade(type="output_check")], None, None, None),
        ([ONLY_REQUIRED], [a_grade(type="tool_calls", score=1.0)], 1.0, None, None),
    ],
    ids=[
        *["the mean of tool calls", "at any depth", "the share of rules", "no violation", "a forbidden call"],
        *["a broken policy", "a broken policy within", "not measured", "one is not measured", "no such graders"],
        "nothing forbidden",
    ],
)
def test_the_metrics_that_grades_tell(
    graders: list[dict[str, Any]],
    grades: list[Grade],
    accuracy: float | None,
    adherence: float | None,
    injection: float | None,
) -> None:
    found = add_grade_metrics(TrialMetrics(cost=1.0), a_task(graders=graders), grades)
    told = (found.tool_call_accuracy, found.policy_adherence, found.injection_success_rate, found.cost)
    assert told == (accuracy, adherence, injection, 1.0)


NOTHING: Any = None


@pytest.mark.parametrize(("name", "label"), [(None, "output_check"), ("the answer", "the answer")])
@pytest.mark.parametrize("wanted", [{"equals": "42"}, {}], ids=["a grade", "an error"])
async def test_a_grade_has_the_graders_name_and_type(wanted: Any, name: str | None, label: str, graded: Graded) -> None:
    result = await graded({"type": "output_check", "name": name, **wanted}, "42")
    assert (result.name, result.type) == (label, "output_check")


@pytest.mark.parametrize(
    ("options", "transcript", "error"),
    [
        ({"type": "unavailable", "kind": "similar"}, "42", "passgate has no grader 'similar'"),
        ({"type": "output_check", "matches": "("}, "x", "/(/ is no regular expression: missing ), "),
        (
            {"type": "output_check", "contains": ["x"]},
            Transcript.model_construct(output=NOTHING),
            "the grader raised TypeError: ",
        ),
    ],
    ids=["a grader that passgate does not have", "an expression that cannot be compiled", "a broken transcript"],
)
async def test_what_a_grader_cannot_do_is_an_error(options: Any, transcript: Any, error: str, graded: Graded) -> None:
    result = await graded(options, transcript)
    assert result.error.startswith(error)
    assert not result.transient


def test_every_type_of_grader_has_a_function() -> None:
    assert all(callable(grade_function(options)) for options in GRADER_TYPES.values())
