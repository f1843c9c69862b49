"""One attempt at a task and its record."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import Grade, Violation
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.sequential import SequentialTest
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.transcript import EndReason, Transcript

_BETWEEN_MODELS = ", "


def joined_models(names: Iterable[str]) -> str:
    """The models that answered a trial as one text, each once; empty names are left out."""
    return _BETWEEN_MODELS.join(sorted({name for name in names if name}))


def single_models(joined: str) -> list[str]:
    """The models of such a text."""
    return [name for name in joined.split(_BETWEEN_MODELS) if name]


class TrialStatus(StrEnum):
    """`failed`: the agent did badly. `error`: we could not measure, which is missing data."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    NOT_RUN = "not_run"


MEASURED = frozenset({TrialStatus.PASSED, TrialStatus.FAILED})
"""The statuses of trials that say something of the agent."""


class Trial(Frozen):
    """One trial as it is recorded, without its transcript."""

    suite: Suite
    task_id: str
    trial: int
    """From 0 to k - 1."""
    k: int
    metric: Metric
    sequential: SequentialTest | None = None
    """What decides its task in place of the rule of its metric."""
    status: TrialStatus
    left_out: bool = False
    """Whether it is `not_run` because it could not change the verdict any more."""
    reason: str = ""
    """Why the trial is not `passed`, in a line."""
    grades: tuple[Grade, ...] = ()
    score: float | None = None
    """The weighted mean of the grades, from 0 to 1, where the task's `scoring` asks for one and each has a score."""
    player_cost: float | None = None
    """US dollars that the judge's model cost as the user of the conversation; `None` where it was not asked."""
    unmeasured_cost: float | None = None
    """US dollars that the run has paid for it beside what its metrics and its judge's marks say: for earlier attempts,
    for calls whose usage never became known, for answers of the judge that were of no use."""
    metrics: TrialMetrics = TrialMetrics()
    model: str = ""
    """The models that answered, as their provider names them, with commas; empty when not known."""
    reused_from: str = ""
    """The earlier run that this trial is of, where nothing has changed since."""
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

    @property
    def judge_cost(self) -> float | None:
        """US dollars, for grades and for playing the user; `None` where nobody was asked or the price is not known."""
        costs = [self.player_cost, *(grade.usage.cost_usd for grade in self.grades)]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None

    @property
    def cost(self) -> float:
        """US dollars that are known to have been spent on it, by the agent and by the judge, in all attempts."""
        return (self.metrics.cost or 0.0) + (self.judge_cost or 0.0) + (self.unmeasured_cost or 0.0)


class FinishedTrial(Frozen):
    """One line of the journal."""

    trial: Trial
    transcript: Transcript

    @property
    def has_not_started(self) -> bool:
        """Whether the agent's command could not be started."""
        return self.transcript.end is EndReason.NOT_STARTED
