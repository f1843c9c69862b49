"""Trials that have come to something, without an agent that has run them."""

from datetime import UTC, datetime

from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus


def trials_of(task: EvalTask, status: TrialStatus, count: int | None = None) -> list[Trial]:
    """The first trials of a task, all k where no number is given, all of one status."""
    return [
        Trial(
            suite=task.suite,
            task_id=task.task_id,
            trial=number,
            k=task.k,
            metric=task.metric,
            sequential=task.sequential,
            status=status,
            score=float(status is TrialStatus.PASSED),
            started_at=datetime.now(UTC),
            task_digest=task.task_digest,
            grader_digest=task.grader_digest,
            file=task.file,
            line=task.line,
        )
        for number in range(task.k if count is None else count)
    ]
