"""What a trial said, did and left behind in, its grades and status out."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders import grade
from passgate.tasks.graders.checks import BORDERLINE_FROM, ROUNDING
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.policy_check import finds_violations
from passgate.tasks.metering.usage import overruns
from passgate.tasks.model.assertions import AssertionOptions
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from passgate.tasks.stats.estimators import weighted_mean

_OF_TOOL_CALLS: Final = frozenset({"tool_calls", "tool_trajectory", "tool_sequence", "tool_arguments", "tool_used"})
_POLICY: Final = "policy_check"
_FINDS_VIOLATIONS: Final = frozenset({_POLICY, "tool_calls"})
_ENDS = {
    EndReason.CRASHED: "the agent crashed",
    EndReason.NOT_STARTED: "the agent could not be started",
    EndReason.OUTPUT_LIMIT: "passgate ended the agent because it printed too much",
    EndReason.FORBIDDEN_CALL: "the agent was stopped",
    EndReason.REPLAY_MISMATCH: "the tool calls differ from the recording",
}


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
    for one in grades:
        yield one
        yield from _with_members(one.members)


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


async def grade_trial(evidence: Evidence) -> tuple[Grade, ...]:
    """Ask every grader of the task, one after the other: graders may run commands in the same workspace."""
    return tuple([await grade(options, evidence) for options in evidence.task.graders])


class GradedTrial(NamedTuple):
    """What the graders of a trial have found."""

    grades: tuple[Grade, ...]
    metrics: TrialMetrics
    """The trial's own, with those of its grades."""


class TrialResult(NamedTuple):
    """What a trial comes to."""

    status: TrialStatus
    reason: str
    """Why it is not `passed`, in a line."""
    score: float | None
    """From 0 to 1; `None` with an error."""


def trial_result(task: EvalTask, transcript: Transcript, metrics: TrialMetrics, grades: Sequence[Grade]) -> TrialResult:
    """The status of a trial, why it is not `passed`, and its score.

    What is certain goes first: an agent that crashed, overran a budget or did not satisfy a grader has failed, also
    when another grader could not measure. Raises `MeasurementError` when a budget cannot be checked.
    """
    ended, failed = _bad_end(transcript), _RULES[task.scoring.rule](task, grades)
    try:
        over = overruns(task.budgets, metrics, transcript)
    except MeasurementError:
        if not ended and not failed:
            raise
        over = ()
    score = trial_score(task, grades)
    if ended or over or failed:
        fatal = bool(ended or over) or any(grade.fatal or grade.violations for grade in grades)
        return TrialResult(TrialStatus.FAILED, "; ".join([*ended, *over, *failed]), 0.0 if fatal else score or 0.0)
    errors = [f"{grade.name}: {grade.error}" for grade in grades if grade.error is not None]
    if errors:
        return TrialResult(TrialStatus.ERROR, "; ".join(errors), None)
    return TrialResult(TrialStatus.PASSED, "", score)


def trial_score(task: EvalTask, grades: Sequence[Grade]) -> float | None:
    """The score of a trial by its grades alone: their mean by weight, or 1 and 0 where all must pass; 0 without
    something required. `None` where it is not known.
    """
    if any(grade.fatal for grade in grades):
        return 0.0
    if task.scoring.rule == "all":
        return float(all(grade.passed for grade in grades))
    scores = [grade.score for grade in grades]
    if None in scores:
        return None
    return weighted_mean([score for score in scores if score is not None], _weights(task))


def _weights(task: EvalTask) -> list[float]:
    return [options.weight for options in task.graders]


def _by_all(task: EvalTask, grades: Sequence[Grade]) -> list[str]:
    return [f"{grade.name}: {_first_failure(grade)}" for grade in grades if grade.error is None and not grade.passed]


def _by_weighted_average(task: EvalTask, grades: Sequence[Grade]) -> list[str]:
    """Graders that bind by themselves and did not pass, else the score where it is below the threshold for certain."""
    bound = [
        grade
        for options, grade in zip(task.graders, grades, strict=True)
        # The graders of passgate's own suites pass or fail: they are required wherever they stand.
        if grade.error is None
        and (grade.fatal or grade.violations or not (grade.passed or isinstance(options, AssertionOptions)))
    ]
    if bound:
        return [f"{grade.name}: {grade.fatal or _first_failure(grade)}" for grade in bound]
    best = weighted_mean([1.0 if grade.score is None else grade.score for grade in grades], _weights(task))
    if best is None:
        raise MeasurementError("every grader has the weight 0, so the trial has no score: give one a weight above 0")
    if best >= task.scoring.threshold - ROUNDING:
        return []
    band = "borderline: " if best >= BORDERLINE_FROM - ROUNDING else ""
    low = [
        f"{grade.name} {grade.score:.3g} ({_first_failure(grade)})"
        for grade in grades
        if grade.error is None and not grade.passed
    ]
    return [f"{band}score {best:.3g}, expected at least {task.scoring.threshold:g}: {'; '.join(low)}"]


_RULES: dict[str, Callable[[EvalTask, Sequence[Grade]], list[str]]] = {
    "all": _by_all,
    "weighted_average": _by_weighted_average,
}


def _bad_end(transcript: Transcript) -> list[str]:
    if transcript.end is EndReason.OVER_BUDGET:
        return [transcript.detail]
    what = _ENDS.get(transcript.end)
    return [f"{what}: {transcript.detail}".rstrip(": ")] if what else []


def _first_failure(grade: Grade) -> str:
    if grade.fatal:
        return grade.fatal
    failed = [check.message for check in grade.checks if not check.passed]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{failed[0]}{more}" if failed else "not passed"
