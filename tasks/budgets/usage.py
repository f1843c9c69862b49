"""The metrics of a trial, from its transcript."""

import json
from collections.abc import Iterable
from typing import TypeVar

from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.stats.percentiles import percentile

Number = TypeVar("Number", int, float)


def trial_metrics(transcript: Transcript) -> TrialMetrics:
    """Every metric that the transcript allows; `None` for what an incomplete one does not show."""
    steps = transcript.steps
    calls = tuple(call for call in transcript.tool_calls if not call.refused)
    tokens_in = _total((step.usage.tokens_in for step in steps), transcript.usage.tokens_in)
    tokens_out = _total((step.usage.tokens_out for step in steps), transcript.usage.tokens_out)
    metrics = TrialMetrics(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=_total((step.usage.tokens_cached for step in steps), transcript.usage.tokens_cached),
        total_tokens=None if tokens_in is None or tokens_out is None else tokens_in + tokens_out,
        wall_time_seconds=transcript.wall_time_seconds,
        p95_step_latency_ms=percentile([step.latency_ms for step in steps if step.latency_ms is not None], 95),
        time_to_first_token=steps[0].time_to_first_token if steps else None,
        cost=_total((step.usage.cost_usd for step in steps), transcript.usage.cost_usd),
    )
    if not transcript.complete:
        return metrics
    judged = all(call.is_error is not None for call in calls)
    return metrics.model_copy(
        update={
            "steps": len(steps),
            "n_turns": sum(message.role == "user" for message in transcript.messages),
            "tool_call_count": len(calls),
            "tool_error_rate": _share(sum(bool(call.is_error) for call in calls), len(calls)) if judged else None,
            "loop_rate": _share(_repeated(calls), len(calls)),
            "retry_rate": _share(_retried(calls), len(calls)) if judged else None,
        }
    )


def _total(steps: Iterable[Number | None], whole: Number | None) -> Number | None:
    """The trial's own figure, else the sum over the steps when every step has one."""
    if whole is not None:
        return whole
    known = list(steps)
    if not known or any(value is None for value in known):
        return None
    return sum(value for value in known if value is not None)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _repeated(calls: tuple[ToolCall, ...]) -> int:
    return len(calls) - len({_identity(call) for call in calls})


def _retried(calls: tuple[ToolCall, ...]) -> int:
    """Calls whose last predecessor with the same tool and arguments had failed."""
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
