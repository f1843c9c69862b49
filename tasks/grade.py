"""Grade: what a trial said, did and left behind in, its grades and status out."""

from collections.abc import Sequence

from passgate.tasks.budgets.limits import overruns
from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import TrialStatus

_ENDS = {
    EndReason.CRASHED: "the agent crashed",
    EndReason.OUTPUT_LIMIT: "the agent was ended because it printed too much",
    EndReason.FORBIDDEN_CALL: "the agent was stopped",
    EndReason.REPLAY_MISMATCH: "the tool calls are not those of the recording",
}


async def grade_trial(evidence: Evidence) -> tuple[Grade, ...]:
    """Ask every grader of the task, one after the other: graders may run commands in the same workspace."""
    return tuple([await grade(options, evidence) for options in evidence.task.graders])


def status_of(
    task: EvalTask, transcript: Transcript, metrics: TrialMetrics, grades: Sequence[Grade]
) -> tuple[TrialStatus, str]:
    """The status of a trial and why it is not `passed`.

    What is certain goes first: an agent that crashed, overran a budget or did not satisfy a grader has failed, also
    when another grader could not measure. Raises `MeasurementError` when a budget cannot be checked.
    """
    ended, failed = _bad_end(transcript), _failures(grades)
    try:
        over = overruns(task.budgets, metrics, transcript)
    except MeasurementError:
        if not ended and not failed:
            raise
        over = ()
    failures = [*ended, *over, *failed]
    if failures:
        return TrialStatus.FAILED, "; ".join(failures)
    errors = [f"{grade.name}: {grade.error}" for grade in grades if grade.error is not None]
    return (TrialStatus.ERROR, "; ".join(errors)) if errors else (TrialStatus.PASSED, "")


def _bad_end(transcript: Transcript) -> list[str]:
    if transcript.end is EndReason.OVER_BUDGET:
        return [transcript.detail]
    what = _ENDS.get(transcript.end)
    return [f"{what}: {transcript.detail}".rstrip(": ")] if what else []


def _failures(grades: Sequence[Grade]) -> list[str]:
    return [f"{grade.name}: {_first_failure(grade)}" for grade in grades if grade.error is None and not grade.passed]


def _first_failure(grade: Grade) -> str:
    failed = [check.message for check in grade.checks if not check.passed]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{failed[0]}{more}" if failed else "not passed"
