"""The metrics of a trial that its grades tell."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final

from passgate.tasks.graders.forbidden import finds_violations
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.task import EvalTask

_OF_TOOL_CALLS: Final = frozenset({"tool_calls", "tool_trajectory", "tool_sequence", "tool_arguments", "tool_used"})
_POLICY: Final = "policy_check"
_FINDS_VIOLATIONS: Final = frozenset({_POLICY, "tool_calls"})


def with_grades(metrics: TrialMetrics, task: EvalTask, grades: Sequence[Grade]) -> TrialMetrics:
    """The metrics of a trial with those of its grades; `None` where the task has no such grader, or it has not
    measured.
    """
    every = list(_with_members(grades))
    policy = [grade for grade in every if grade.type == _POLICY]
    return metrics.model_copy(
        update={
            "tool_call_accuracy": _mean_score([grade for grade in every if grade.type in _OF_TOOL_CALLS]),
            "policy_adherence": _share_of_checks(policy),
            "injection_success_rate": _violated(task, every),
        }
    )


def _with_members(grades: Sequence[Grade]) -> Iterator[Grade]:
    for grade in grades:
        yield grade
        yield from _with_members(grade.members)


def _mean_score(grades: Sequence[Grade]) -> float | None:
    scores = [grade.score for grade in grades if grade.score is not None]
    return fmean(scores) if scores and len(scores) == len(grades) else None


def _share_of_checks(grades: Sequence[Grade]) -> float | None:
    checks = [check.passed for grade in grades for check in grade.checks]
    measured = all(grade.error is None for grade in grades)
    return fmean(checks) if checks and measured else None


def _violated(task: EvalTask, grades: Sequence[Grade]) -> float | None:
    """1 with a violation, 0 without one where all was looked at that can find one."""
    if any(grade.violations for grade in grades):
        return 1.0
    measured = all(grade.error is None for grade in grades if grade.type in _FINDS_VIOLATIONS)
    return 0.0 if measured and finds_violations(task) else None
