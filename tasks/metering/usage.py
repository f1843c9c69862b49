"""What one trial used: its metrics, the budgets that it overran, and the record of it while it is made."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, ToolCall, Transcript
from passgate.tasks.model.trial import Trial, TrialMetrics, joined_models
from passgate.tasks.stats.estimators import percentile

if TYPE_CHECKING:
    from passgate.tasks.metering.cost_cap import ChargedLlmJudge

# Costs are sums of fractions of cents.
_ROUNDING: Final = 1 + 1e-9
_LEAST_DOLLARS: Final = 1e-9


def trial_metrics(transcript: Transcript) -> TrialMetrics:
    """Return every metric that the transcript allows; `None` for what an incomplete one does not show."""
    steps = transcript.steps
    calls = tuple(call for call in transcript.tool_calls if not call.refused)
    used = transcript.whole_usage
    metrics = TrialMetrics(
        tokens_in=used.tokens_in,
        tokens_out=used.tokens_out,
        tokens_cached=used.tokens_cached,
        total_tokens=None if used.tokens_in is None or used.tokens_out is None else used.tokens_in + used.tokens_out,
        wall_time_seconds=transcript.wall_time_seconds,
        p95_step_latency_ms=percentile([step.latency_ms for step in steps if step.latency_ms is not None], 95),
        time_to_first_token=steps[0].time_to_first_token if steps else None,
        cost=used.cost_usd,
    )
    if not transcript.complete:
        return metrics
    judged = all(call.is_error is not None for call in calls)
    count = len(calls) or 1
    return metrics.model_copy(
        update={
            "steps": len(steps),
            "n_turns": sum(message.role == "user" for message in transcript.messages),
            "tool_call_count": len(calls),
            "tool_error_rate": sum(bool(call.is_error) for call in calls) / count if judged else None,
            "loop_rate": (len(calls) - len(set(map(_identity, calls)))) / count,
            "retry_rate": _retry_count(calls) / count if judged else None,
        }
    )


def _retry_count(calls: tuple[ToolCall, ...]) -> int:
    """Count the calls whose last predecessor with the same tool and arguments had failed."""
    failed: set[tuple[str, str]] = set()
    retried = 0
    for call in calls:
        identity = _identity(call)
        retried += identity in failed
        if call.is_error:
            failed.add(identity)
        else:
            failed.discard(identity)
    return retried


def _identity(call: ToolCall) -> tuple[str, str]:
    return call.tool, json.dumps(call.arguments, sort_keys=True, default=str)


def overruns(budgets: Budgets, metrics: TrialMetrics, transcript: Transcript) -> tuple[str, ...]:
    """Return a line for every budget that was overrun.

    Raises `MeasurementError` if none is certain, there is a cost budget and the cost is unknown: unknown is not free.
    """
    used = {
        "max_steps": (metrics.steps, budgets.max_steps),
        "max_tool_calls": (metrics.tool_call_count, budgets.max_tool_calls),
        "max_tokens": (metrics.total_tokens, budgets.max_tokens),
        "max_cost_usd": (metrics.cost, budgets.max_cost_usd),
    }
    lines = [
        f"over budget: {name} is {limit:g} and the trial used {value:g}"
        for name, (value, limit) in used.items()
        if value is not None and limit is not None and value > limit * _ROUNDING
    ]
    if transcript.end is EndReason.TIMED_OUT:
        limit = "" if budgets.max_seconds is None else f"max_seconds is {budgets.max_seconds:g} and "
        lines.append(f"over budget: {limit}the agent was still running")
    if not lines and budgets.max_cost_usd is not None and metrics.cost is None and transcript.messages:
        raise MeasurementError("the task has a cost budget, but the agent does not report its cost")
    return tuple(lines)


@dataclass(slots=True)
class TrialRecord:
    """One attempt: its trial so far, its transcript, and what it has cost."""

    trial: Trial
    judge: "ChargedLlmJudge | None"
    transcript: Transcript = field(default_factory=Transcript)
    agent_paid: float = 0.0  # US dollars of the run's money
    is_late_error: bool = False  # Whether the agent could know how the trial goes before it became an error

    def add_transcript(self, transcript: Transcript, metrics: TrialMetrics, isolation: str) -> None:
        """Add the agent's part."""
        self.transcript = transcript
        played = [message.usage.cost_usd for message in transcript.messages if message.role == "user"]
        costs = [cost for cost in played if cost is not None]
        update = {
            "player_cost": sum(costs) if costs else None,
            "metrics": metrics,
            "model": joined_models(step.model for step in transcript.steps),
            "isolation": isolation,
        }
        self.trial = self.trial.model_copy(update=update)

    def final_trial(self) -> Trial:
        """Return the trial with what was paid beyond what it states itself."""
        trial = self.trial
        of_agent = max(0.0, self.agent_paid - (trial.metrics.cost or 0.0))
        of_judge = max(0.0, (self.judge.paid if self.judge else 0.0) - (trial.judge_cost or 0.0))
        beside = (trial.unmeasured_cost or 0.0) + of_agent + of_judge
        return trial.model_copy(update={"unmeasured_cost": beside if beside > _LEAST_DOLLARS else None})
