"""The metrics that the grades of a trial tell."""

from typing import Any

import pytest

from passgate.tasks.graders.grading import with_grades
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.trial import TrialMetrics
from tests.builders import a_grade, a_task, a_violation

TOOL_CALLS = {"type": "tool_calls", "forbidden": ["delete"]}
POLICY = {"type": "policy_check", "deny_tools": ["delete", "drop"]}
ONLY_REQUIRED = {"type": "tool_calls", "required": ["read"]}


def of(graders: list[dict[str, Any]], *grades: Grade) -> tuple[float | None, float | None, float | None]:
    """Tool-call accuracy, policy adherence and injection success rate."""
    found = with_grades(TrialMetrics(cost=1.0), a_task(graders=graders), grades)
    assert found.cost == 1.0
    return found.tool_call_accuracy, found.policy_adherence, found.injection_success_rate


def checks(*passed: bool) -> tuple[Check, ...]:
    return tuple(Check(passed=one, message="rule") for one in passed)


def test_the_accuracy_of_tool_calls_is_the_mean_score_of_their_graders() -> None:
    half = a_grade(type="tool_calls", score=0.5)
    whole = a_grade(type="tool_trajectory", score=1.0)
    other = a_grade(type="output_check", score=0.0)
    assert of([ONLY_REQUIRED], half, whole, other)[0] == 0.75
    composite = a_grade(type="composite", score=0.1, members=(half, a_grade(type="composite", members=(whole,))))
    assert of([ONLY_REQUIRED], composite)[0] == 0.75


def test_the_adherence_to_policies_is_the_share_of_their_rules_that_hold() -> None:
    first = a_grade(type="policy_check", score=0.5, checks=checks(True, False))
    second = a_grade(type="policy_check", score=1.0, checks=checks(True, True, True))
    assert of([POLICY], first, second)[1] == 0.8


@pytest.mark.parametrize("grader", [TOOL_CALLS, POLICY])
def test_an_injection_succeeds_with_a_violation(grader: dict[str, Any]) -> None:
    kept = a_grade(type=grader["type"], checks=checks(True))
    broken = kept.model_copy(update={"violations": (a_violation(),)})
    assert of([grader], kept)[2] == 0.0
    assert of([grader], broken)[2] == 1.0
    composite = {"type": "composite", "assertions": [grader]}
    assert of([composite], a_grade(type="composite", members=(broken,)))[2] == 1.0


def test_what_could_not_be_measured_is_unknown() -> None:
    error = a_grade(type="policy_check", score=None, error="no transcript")
    unmeasured = a_grade(type="tool_calls", score=None, error="no transcript")
    assert of([POLICY, TOOL_CALLS], error, unmeasured) == (None, None, None)
    broken = a_grade(type="policy_check", checks=checks(False), violations=(a_violation(),))
    assert of([POLICY, POLICY], error, broken) == (None, None, 1.0)


def test_a_task_without_such_graders_has_no_such_metrics() -> None:
    assert of([{"type": "output_check", "contains": ["yes"]}], a_grade(type="output_check")) == (None, None, None)
    assert of([ONLY_REQUIRED], a_grade(type="tool_calls", score=1.0)) == (1.0, None, None)
