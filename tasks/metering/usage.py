"""The metrics of a trial, from its transcript."""

import json

from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics
from passgate.tasks.stats.estimators import percentile


def trial_metrics(transcript: Transcript) -> TrialMetrics:
    """Every metric that the transcript allows; `None` for what an incomplete one does not show."""
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
