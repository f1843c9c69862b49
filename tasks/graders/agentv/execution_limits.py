"""Limits as AgentV scores them: the share that is kept, and what was not measured is not kept."""

from collections.abc import Iterator, Sequence

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.trajectories.limits import (
    Limit,
    exploration_check,
    given,
    grade_execution_metrics,
    limit_check,
    made_calls,
    milliseconds,
)
from passgate.tasks.model.assertions import AssertionOptions, Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.trial import TrialMetrics


async def grade_execution_metrics_as_agentv(options: ExecutionMetrics, evidence: Evidence) -> Grade:
    """The share of the limits that are kept. Calls are those that the transcript holds, whether it is complete or not.

    AgentV has no limits on tokens in and tokens out alone: it drops a grader with no other, which passgate does not.
    """
    metrics = evidence.metrics
    limits = given(
        ("tool calls", len(made_calls(evidence)), options.max_tool_calls),
        # An answer without messages is one message.
        ("model calls", len(evidence.transcript.steps) or 1, options.max_llm_calls),
        ("tokens", metrics.total_tokens, options.max_tokens),
        ("US dollars", metrics.cost, options.max_cost_usd),
        ("milliseconds", milliseconds(metrics), options.max_duration_ms),
    )
    checks = [*map(_check, limits), *_exploration(options, evidence)]
    if not checks:
        return await grade_execution_metrics(options, evidence)
    return scored(options, sum(check.passed for check in checks) / _count(options, checks), checks)


async def grade_latency_as_agentv(options: Latency, evidence: Evidence) -> Grade:
    """1 when the trial took no longer, else 0."""
    return _all_kept(options, [Limit("milliseconds", milliseconds(evidence.metrics), options.threshold)])


async def grade_cost_as_agentv(options: Cost, evidence: Evidence) -> Grade:
    """1 when the trial is known to cost no more, else 0."""
    return _all_kept(options, [Limit("US dollars", evidence.metrics.cost, options.budget)])


async def grade_token_usage_as_agentv(options: TokenUsage, evidence: Evidence) -> Grade:
    """1 when every limit is kept, else 0. The total counts the tokens from the provider's cache beside those in and
    out.
    """
    metrics = evidence.metrics
    limits = given(
        ("tokens, with cached tokens counted twice", _total(metrics), options.max_total),
        ("tokens in", metrics.tokens_in, options.max_input),
        ("tokens out", metrics.tokens_out, options.max_output),
    )
    return _all_kept(options, limits)


def _total(metrics: TrialMetrics) -> int | None:
    return None if metrics.total_tokens is None else metrics.total_tokens + (metrics.tokens_cached or 0)


def _all_kept(options: AssertionOptions, limits: Sequence[Limit]) -> Grade:
    checks = [_check(limit) for limit in limits]
    kept = sum(check.passed for check in checks) == _count(options, checks)
    return scored(options, float(kept), checks)


def _count(options: AssertionOptions, checks: Sequence[Check]) -> int:
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check that AgentV knows: set at least one limit")
    return len(checks)


def _check(limit: Limit) -> Check:
    if limit.found is None:
        return Check(passed=False, message=f"{limit.what}: not measured, expected at most {limit.most:.10g}")
    return limit_check(limit, limit.found)


def _exploration(options: ExecutionMetrics, evidence: Evidence) -> Iterator[Check]:
    if options.target_exploration_ratio is not None:
        yield exploration_check(options, options.target_exploration_ratio, made_calls(evidence))
