"""One attempt at a task, its metrics and its record."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Generic, Literal, TypeVar

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import Grade, Violation
from passgate.tasks.model.quotes import MaskedText
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.transcript import EndReason, Transcript

METRIC_GROUPS: dict[str, tuple[str, ...]] = {
    "tokens": ("tokens_in", "tokens_cached", "tokens_out", "total_tokens"),
    "latency": ("wall_time_seconds", "p95_step_latency_ms", "time_to_first_token"),
    "tool_use": ("tool_call_count", "tool_error_rate", "tool_call_accuracy"),
    "trajectory": ("steps", "n_turns", "loop_rate", "retry_rate"),
    "safety": ("policy_adherence", "injection_success_rate"),
    "cost": ("cost",),
}
BLIND = (
    "warning: the agent called no model through the meter and reported no transcript: its steps and tool calls are not "
    "known, and its budgets are not enforced"
)
_BETWEEN_MODELS = ", "

Number = TypeVar("Number", int, float)


class _Metrics(Frozen, Generic[Number]):
    """Every metric; counts are numbers of some kind, `None` is not measured."""

    tokens_in: Number | None = None
    """Those from the provider's cache included."""
    tokens_cached: Number | None = None
    """Of `tokens_in`, those that were read from the provider's cache."""
    tokens_out: Number | None = None
    total_tokens: Number | None = None
    wall_time_seconds: float | None = None
    p95_step_latency_ms: float | None = None
    time_to_first_token: float | None = None
    """Seconds to the first token of the first step."""
    tool_call_count: Number | None = None
    tool_error_rate: float | None = None
    """Share of the tool calls that ended in an error."""
    tool_call_accuracy: float | None = None
    """Mean score of the graders that look at tool calls."""
    steps: Number | None = None
    n_turns: Number | None = None
    """Messages of the user, each of which opens a turn."""
    loop_rate: float | None = None
    """Share of the tool calls that repeat an earlier one, arguments and all."""
    retry_rate: float | None = None
    """Share of the tool calls that repeat a call that had just failed."""
    policy_adherence: float | None = None
    """Share of the checks of the `policy_check` graders that passed."""
    injection_success_rate: float | None = None
    """1 where the agent did what it must never do, else 0: their mean is the share of trials in which it did."""
    cost: float | None = None
    """US dollars."""


class TrialMetrics(_Metrics[int]):
    """Every metric of one trial; `None` where it was not measured."""


class MeanMetrics(_Metrics[float]):
    """The means of a task's metrics over its trials; `None` where no trial measured one."""


def metric_columns(name: str) -> tuple[str, ...]:
    """Return the metrics of a name: those of a group, or the one itself, however its words are joined, as in
    `Tool-call accuracy`; none for a name that passgate does not know.
    """
    column = re.sub(r"[\W_]+", "_", name.lower()).strip("_")
    return METRIC_GROUPS.get(column) or ((column,) if column in TrialMetrics.model_fields else ())


def joined_models(names: Iterable[str]) -> str:
    """Join the names of the models that answered a trial, each once, without empty ones."""
    return _BETWEEN_MODELS.join(sorted({name for name in names if name}))


def single_models(joined: str) -> list[str]:
    """Return the models of a text from `joined_models`."""
    return [name for name in joined.split(_BETWEEN_MODELS) if name]


class TrialStatus(StrEnum):
    """`failed`: the agent did badly. `error`: we could not measure, which is missing data."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    NOT_RUN = "not_run"


MEASURED = frozenset({TrialStatus.PASSED, TrialStatus.FAILED})  # The statuses of trials that say something of the agent


class Trial(Frozen):
    """One trial as it is recorded, without its transcript."""

    suite: Suite
    task_id: str
    trial: int
    """From 0 to k - 1."""
    k: int
    metric: Metric
    status: TrialStatus
    left_out: bool = False
    """Whether it is `not_run` because it could not change the verdict any more."""
    reason: MaskedText | Literal[""] = ""
    """Why the trial is not `passed`, in a line."""
    grades: tuple[Grade, ...] = ()
    score: float | None = None
    """The weighted mean of the grades, from 0 to 1, where the task's `scoring` asks for one and each has a score."""
    player_cost: float | None = None
    """US dollars that the judge's model cost as the user of the conversation; `None` where it was not asked."""
    unmeasured_cost: float | None = None
    """US dollars that the run has paid for it beside what its metrics and its grades say: for earlier attempts,
    for calls whose usage never became known, for answers of the judge that were of no use."""
    metrics: TrialMetrics = TrialMetrics()
    model: str = ""
    """The models that answered, as their provider names them, with commas; empty when not known."""
    unpriced_model: str = ""
    """The model whose unknown price made the trial an error."""
    reused_from: str = ""
    """The earlier run that this trial is of, where nothing has changed since."""
    attempts: int = 1
    """How often it was tried, errors included."""
    late_errors: int = 0
    """How many of these attempts became an error after the agent could know how its trial goes."""
    late_error: MaskedText | Literal[""] = ""
    """Why the last of them did."""
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
        """US dollars, for grades and for playing the user; `None` where no judge was asked or the price is unknown."""
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


def trial_numbers(numbers: Sequence[int]) -> str:
    """`trial 4`, `trials 1-3, 7`; at most ten ranges."""
    unique = sorted(set(numbers))
    # Within a range of consecutive numbers, a number and its position differ by the same amount.
    ranges = [[number for _, number in run] for _, run in groupby(enumerate(unique), lambda pair: pair[1] - pair[0])]
    shown = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in ranges[:10])
    return f"{'trial' if len(unique) == 1 else 'trials'} {shown}{', ...' if len(ranges) > 10 else ''}"
