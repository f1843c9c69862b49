"""Limits on the agent's steps, calls, tokens, cost and time."""

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import graded, scored, settle
from passgate.tasks.graders.evidence import Evidence, UnreportedError
from passgate.tasks.model.assertions import Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import TrajectoryMetrics

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
}  # What the options of `trajectory_metrics` limit
EXPLORING_TOOLS: Final = frozenset(
    {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
)  # Read-only tools, by the names that AgentV has for them
ExecutionLimits = ExecutionMetrics | Latency | Cost | TokenUsage


class Limit(NamedTuple):
    """One limit, and what the trial has of it: `None` where that was not measured."""

    what: str
    found: float | None
    bound: float


async def grade_trajectory(options: TrajectoryMetrics, evidence: Evidence) -> RawGrade:
    """Hold the metrics of the trial against the limits. The score is the share of limits that were kept.

    Raises `MeasurementError` when a limited metric was not measured, unless another limit is already broken:
    that fail is certain whatever the missing one would say.
    """
    checks: list[RawCheck] = []
    missing: list[str] = []
    for option, metric in METRIC_OF_OPTION.items():
        bound, is_least = getattr(options, option), option.startswith("min_")
        if bound is None:
            continue
        expected = f"expected at {'least' if is_least else 'most'} {bound:g}"
        found = _measured(getattr(evidence.metrics, metric))
        if found is None:
            missing.append(metric)
            checks.append(RawCheck(passed=False, message=f"{metric} was not measured, {expected}"))
        else:
            passed = found >= bound if is_least else found <= bound
            checks.append(RawCheck(passed=passed, message=f"{metric} is {found:g}, {expected}"))
    # Only what was not measured has failed.
    if missing and sum(not check.passed for check in checks) == len(missing):
        raise UnreportedError(f"not measured: {', '.join(dict.fromkeys(missing))}")
    return graded(options, checks)


def _measured(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


async def grade_execution_limits(options: ExecutionLimits, evidence: Evidence) -> RawGrade:
    """1 when every limit is kept and the share of read-only tool calls is as wanted, else 0.

    Raises `MeasurementError` when something limited was not measured, unless another limit is already broken.
    """
    checks = [_kept(limit) for limit in _limits(options, evidence)]
    if isinstance(options, ExecutionMetrics) and options.target_exploration_ratio is not None:
        checks.append(_explored(options, options.target_exploration_ratio, evidence))
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one limit")
    settled = await settle(checks)
    return scored(options, float(all(check.passed for check in settled)), settled)


def _milliseconds(evidence: Evidence) -> float | None:
    seconds = evidence.metrics.wall_time_seconds
    return None if seconds is None else seconds * 1000


_LIMITED: Final[Mapping[str, tuple[str, Callable[[Evidence], float | None]]]] = {
    "max_tool_calls": ("tool calls", lambda evidence: evidence.metrics.tool_call_count),
    "max_llm_calls": ("model calls", lambda evidence: evidence.metrics.steps),
    "max_tokens": ("tokens", lambda evidence: evidence.metrics.total_tokens),
    "max_total": ("tokens", lambda evidence: evidence.metrics.total_tokens),
    "max_input_tokens": ("tokens in", lambda evidence: evidence.metrics.tokens_in),
    "max_input": ("tokens in", lambda evidence: evidence.metrics.tokens_in),
    "max_output_tokens": ("tokens out", lambda evidence: evidence.metrics.tokens_out),
    "max_output": ("tokens out", lambda evidence: evidence.metrics.tokens_out),
    "max_cost_usd": ("US dollars", lambda evidence: evidence.metrics.cost),
    "budget": ("US dollars", lambda evidence: evidence.metrics.cost),
    "max_duration_ms": ("milliseconds", _milliseconds),
    "threshold": ("milliseconds", _milliseconds),
}  # By option of any grader of execution limits: what it limits, and how much of that a trial has


def _limits(options: ExecutionLimits, evidence: Evidence) -> list[Limit]:
    """Return the limits that the options set, and what the trial has of each."""
    return [
        Limit(what, _measured(found(evidence)), most)
        for option, (what, found) in _LIMITED.items()
        if (most := getattr(options, option, None)) is not None
    ]


async def _kept(limit: Limit) -> RawCheck:
    if limit.found is None:
        raise UnreportedError(f"not measured: {limit.what}")
    # 1.1 s are not more than 1100 ms, whatever binary fractions make of it.
    passed = limit.found <= limit.bound or math.isclose(limit.found, limit.bound, rel_tol=1e-9)
    return RawCheck(passed=passed, message=f"{limit.what}: {limit.found:.10g}, expected at most {limit.bound:.10g}")


async def _explored(options: ExecutionMetrics, target: float, evidence: Evidence) -> RawCheck:
    """Whether the share of read-only tool calls is near enough to the target; without calls it is not."""
    evidence.require_every_call()
    calls = evidence.calls(refused=False)
    wanted = f"expected {target:g} ± {options.exploration_tolerance:g}"
    if not calls:
        missing = "there are no tool calls, so the share of read-only calls is undefined"
        return RawCheck(passed=False, message=f"{missing}, {wanted}")
    ratio = sum(call.tool in EXPLORING_TOOLS for call in calls) / len(calls)
    distance = abs(ratio - target)
    passed = distance <= options.exploration_tolerance or math.isclose(distance, options.exploration_tolerance)
    return RawCheck(passed=passed, message=f"the share of read-only tool calls is {ratio:.4g}, {wanted}")
