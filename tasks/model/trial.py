"""One attempt at a task and its record."""

from datetime import datetime
from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import Grade, Violation
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.transcript import Transcript


class TrialStatus(StrEnum):
    """`failed`: the agent did badly. `error`: we could not measure, which is missing data."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    NOT_RUN = "not_run"


class Trial(Frozen):
    """One trial as it is recorded, without its transcript."""

    suite: Suite
    task_id: str
    trial: int
    """From 0 to k - 1."""
    k: int
    metric: Metric
    status: TrialStatus
    reason: str = ""
    """Why the trial is not `passed`, in a line."""
    grades: tuple[Grade, ...] = ()
    metrics: TrialMetrics = TrialMetrics()
    attempts: int = 1
    """How often it was tried, errors included."""
    isolation: str = ""
    started_at: datetime
    task_digest: str
    grader_digest: str
    transcript_digest: str = ""
    file: str
    line: int

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(violation for grade in self.grades for violation in grade.violations)


class FinishedTrial(Frozen):
    """One line of the journal."""

    trial: Trial
    transcript: Transcript
