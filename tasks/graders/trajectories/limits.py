"""Limits on how the agent went about it: steps, calls, tokens, cost, time."""

import math
from collections.abc import Awaitable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import graded, scored, settle
from passgate.tasks.graders.interface import UNKNOWN_CALLS, Evidence, UnreportedError
from passgate.tasks.model.assertions import AssertionOptions, Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import TrajectoryMetrics
from passgate.tasks.model.transcript import ToolCall
from passgate.tasks.model.trial import TrialMetrics

METRIC_OF_OPTION: Final = {
    "max_steps": "steps",
    "min_steps": "steps",
    "max_tool_calls": "tool_call_count",
    "min_tool_calls": "tool_call_count",
    "max_loop_rate": "loop_rate",
    "max_retry_rate": "retry_rate",
    "max_tool_error_rate": "tool_error_rate",
    "max_total_tokens": "total_tokens",
    "max_wall_time_seconds": "wall_time_seconds",
    "max_p95_step_latency_ms": "p95_step_latency_ms",
}


class MetricLimit(NamedTuple):
    """One limit of the options."""

    metric: str
    bound: Literal["at most", "at least"]
    value: float


async def grade_trajectory(options: TrajectoryMetrics, evidence: Evidence) -> Grade:
    """Hold the metrics of the trial against the limits. The score is the share of limits that were kept.

    Raises `MeasurementError` when a limited metric was not measured, unless another limit is already broken:
    that fail is certain whatever the missing one would say.
    """
    limits = list(_limits(options))
    missing = [limit.metric for limit in limits if _measured(limit.metric, evidence.metrics) is None]
    checks = [_metric_check(limit, evidence.metrics) for limit in limits]
    broken = any(not check.passed for check, limit in zip(checks, limits, strict=True) if limit.metric not in missing)
    if missing and not broken:
        names = ", ".join(dict.fromkeys(missing))
        raise UnreportedError(f"not measured: {names}")
    return graded(options, checks)


def _limits(options: TrajectoryMetrics) -> Iterator[MetricLimit]:
    for option, metric in METRIC_OF_OPTION.items():
        value = getattr(options, option)
        if value is not None:
            yield MetricLimit(metric, "at least" if option.startswith("min_") else "at most", value)


def _measured(metric: str, metrics: TrialMetrics) -> float | None:
    value: float | None = getattr(metrics, metric)
    return None if value is None or math.isnan(value) else value


def _metric_check(limit: MetricLimit, metrics: TrialMetrics) -> Check:
    value = _measured(limit.metric, metrics)
    expected = f"expected {limit.bound} {limit.value:g}"
    if value is None:
        return Check(passed=False, message=f"{limit.metric} was not measured, {expected}")
    passed = value <= limit.value if limit.bound == "at most" else value >= limit.value
    return Check(passed=passed, message=f"{limit.metric} is {value:g}, {expected}")


EXPLORING_TOOLS: Final = frozenset(
    {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
)
"""The tools that only look, by the names that AgentV has for them."""


class Limit(NamedTuple):
    """One limit, and what the trial has of it: `None` where that was not measured."""

    what: str
    found: float | None
    most: float


async def grade_execution_metrics(options: ExecutionMetrics, evidence: Evidence) -> Grade:
    """1 when every limit is kept and the share of tool calls that only look is as wanted, else 0.

    Raises `MeasurementError` when something limited was not measured, unless another limit is already broken.
    """
    metrics = evidence.metrics
    limits = given(
        ("tool calls", metrics.tool_call_count, options.max_tool_calls),
        ("model calls", metrics.steps, options.max_llm_calls),
        ("tokens", metrics.total_tokens, options.max_tokens),
        ("tokens in", metrics.tokens_in, options.max_input_tokens),
        ("tokens out", metrics.tokens_out, options.max_output_tokens),
        ("US dollars", metrics.cost, options.max_cost_usd),
        ("milliseconds", milliseconds(metrics), options.max_duration_ms),
    )
    return await _all_bind(options, [*map(_kept, limits), *_exploration(options, evidence)])


async def grade_latency(options: Latency, evidence: Evidence) -> Grade:
    """1 when the trial took no longer, else 0. Raises `MeasurementError` when its time was not measured."""
    return await _all_bind(options, [_kept(Limit("milliseconds", milliseconds(evidence.metrics), options.threshold))])


async def grade_cost(options: Cost, evidence: Evidence) -> Grade:
    """1 when the trial cost no more, else 0. Raises `MeasurementError` when its cost is not known."""
    return await _all_bind(options, [_kept(Limit("US dollars", evidence.metrics.cost, options.budget))])


async def grade_token_usage(options: TokenUsage, evidence: Evidence) -> Grade:
    """1 when every limit is kept, else 0.

    Raises `MeasurementError` when tokens were not counted, unless another limit is already broken.
    """
    metrics = evidence.metrics
    limits = given(
        ("tokens", metrics.total_tokens, options.max_total),
        ("tokens in", metrics.tokens_in, options.max_input),
        ("tokens out", metrics.tokens_out, options.max_output),
    )
    return await _all_bind(options, [_kept(limit) for limit in limits])


def given(*limits: tuple[str, float | None, float | None]) -> list[Limit]:
    """The limits that the options set: name, what was found, the most that is allowed."""
    return [Limit(what, found, most) for what, found, most in limits if most is not None]


def milliseconds(metrics: TrialMetrics) -> float | None:
    """How long the trial took."""
    return None if metrics.wall_time_seconds is None else metrics.wall_time_seconds * 1000


def limit_check(limit: Limit, found: float) -> Check:
    """Whether a limit is kept; 1.1 s are not more than 1100 ms, whatever binary fractions make of it."""
    passed = found <= limit.most or math.isclose(found, limit.most, rel_tol=1e-9)
    return Check(passed=passed, message=f"{limit.what}: {found:.10g}, expected at most {limit.most:.10g}")


def exploration_ratio(calls: Sequence[ToolCall]) -> float | None:
    """The share of calls to tools that only look; `None` without calls."""
    return sum(call.tool in EXPLORING_TOOLS for call in calls) / len(calls) if calls else None


def exploration_check(options: ExecutionMetrics, target: float, calls: Sequence[ToolCall]) -> Check:
    """Whether the share of tool calls that only look is near enough to the target; without calls it is not."""
    ratio = exploration_ratio(calls)
    wanted = f"expected {target:g} ± {options.exploration_tolerance:g}"
    if ratio is None:
        return Check(
            passed=False, message=f"there are no tool calls, so the share of read-only calls is undefined, {wanted}"
        )
    distance = abs(ratio - target)
    passed = distance <= options.exploration_tolerance or math.isclose(distance, options.exploration_tolerance)
    return Check(passed=passed, message=f"the share of read-only tool calls is {ratio:.4g}, {wanted}")


def made_calls(evidence: Evidence) -> list[ToolCall]:
    """The tool calls of the trial that were not refused."""
    return [call for call in evidence.transcript.tool_calls if not call.refused]


async def _kept(limit: Limit) -> Check:
    if limit.found is None or math.isnan(limit.found):
        raise UnreportedError(f"not measured: {limit.what}")
    return limit_check(limit, limit.found)


def _exploration(options: ExecutionMetrics, evidence: Evidence) -> Iterator[Awaitable[Check]]:
    if options.target_exploration_ratio is not None:
        yield _explored(options, options.target_exploration_ratio, evidence)


async def _explored(options: ExecutionMetrics, target: float, evidence: Evidence) -> Check:
    if not evidence.transcript.complete:
        raise UnreportedError(UNKNOWN_CALLS)
    return exploration_check(options, target, made_calls(evidence))


async def _all_bind(options: AssertionOptions, checks: Sequence[Awaitable[Check]]) -> Grade:
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one limit")
    settled = await settle(checks)
    return scored(options, float(all(check.passed for check in settled)), settled)
