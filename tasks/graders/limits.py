"""Limits on the agent's steps, calls, tokens, cost and time."""

import math
from collections.abc import Sequence
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.evidence import Evidence, checks_grade, score_grade
from passgate.tasks.model.assertions import Cost, ExecutionMetrics, Latency, TokenUsage
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import TrajectoryMetrics

LIMITS: Final = {
    **dict.fromkeys(("max_steps", "min_steps"), ("steps", "steps")),
    **dict.fromkeys(("max_tool_calls", "min_tool_calls"), ("tool calls", "tool_call_count")),
    "max_llm_calls": ("model calls", "steps"),
    "max_loop_rate": ("loop rate", "loop_rate"),
    "max_retry_rate": ("retry rate", "retry_rate"),
    "max_tool_error_rate": ("tool error rate", "tool_error_rate"),
    **dict.fromkeys(("max_total_tokens", "max_tokens", "max_total"), ("tokens", "total_tokens")),
    **dict.fromkeys(("max_input_tokens", "max_input"), ("tokens in", "tokens_in")),
    **dict.fromkeys(("max_output_tokens", "max_output"), ("tokens out", "tokens_out")),
    **dict.fromkeys(("max_cost_usd", "budget"), ("US dollars", "cost")),
    "max_wall_time_seconds": ("seconds", "wall_time_seconds"),
    **dict.fromkeys(("max_duration_ms", "threshold"), ("milliseconds", "wall_time_seconds")),
    "max_p95_step_latency_ms": ("p95 of the step latency in ms", "p95_step_latency_ms"),
}
"""By option of any grader of limits: what it limits, in words, and the metric of a trial."""
EXPLORING_TOOLS: Final = frozenset(
    {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
)  # Read-only tools, by the names that AgentV has for them
ExecutionLimits = ExecutionMetrics | Latency | Cost | TokenUsage


async def grade_trajectory(options: TrajectoryMetrics, evidence: Evidence) -> RawGrade:
    """Hold the metrics of the trial against the limits. The score is the share of limits that were kept.

    Raises `MeasurementError` when a limited metric was not measured, unless another limit is already broken:
    that fail is certain whatever the missing one would say.
    """
    checks, missing = _check_limits(options, evidence)
    _require_certain(evidence, checks, missing)
    return checks_grade(options, checks)


async def grade_execution_limits(options: ExecutionLimits, evidence: Evidence) -> RawGrade:
    """Return 1 when every limit is kept and the share of read-only tool calls is as wanted, else 0. Raises
    `MeasurementError` when something limited was not measured, unless another limit is already broken.
    """
    checks, missing = _check_limits(options, evidence)
    if isinstance(options, ExecutionMetrics) and options.target_exploration_ratio is not None:
        checks.append(_check_exploration(options, options.target_exploration_ratio, evidence))
        missing += [] if evidence.transcript.complete else ["tool calls"]
    if not checks:
        raise MeasurementError(f"{options.label} has nothing to check: set at least one limit")
    _require_certain(evidence, checks, missing)
    return score_grade(options, float(all(check.passed for check in checks)), checks)


def _check_limits(options: TrajectoryMetrics | ExecutionLimits, evidence: Evidence) -> tuple[list[RawCheck], list[str]]:
    """Return a check for each limit that the options set, and what of it was not measured."""
    checks, missing = list[RawCheck](), list[str]()
    for option, (what, metric) in LIMITS.items():
        bound, is_least = getattr(options, option, None), option.startswith("min_")
        if bound is None:
            continue
        expected = f"expected at {'least' if is_least else 'most'} {bound:.10g}"
        value = getattr(evidence.metrics, metric)
        if value is None or math.isnan(value):
            missing.append(what)
            checks.append(RawCheck(passed=False, message=f"{what}: not measured, {expected}"))
            continue
        if what == "milliseconds":
            value *= 1000
        # 1.1 s are not more than 1100 ms, whatever binary fractions make of it.
        passed = (value >= bound if is_least else value <= bound) or math.isclose(value, bound, rel_tol=1e-9)
        checks.append(RawCheck(passed=passed, message=f"{what}: {value:.10g}, {expected}"))
    return checks, missing


def _require_certain(evidence: Evidence, checks: Sequence[RawCheck], missing: Sequence[str]) -> None:
    """Raise `MeasurementError` when nothing but what was not measured has failed."""
    if missing and sum(not check.passed for check in checks) == len(missing):
        raise evidence.unreported(f"not measured: {', '.join(dict.fromkeys(missing))}")


def _check_exploration(options: ExecutionMetrics, target: float, evidence: Evidence) -> RawCheck:
    """Check whether the share of read-only tool calls is near enough to the target; without calls it is not."""
    if not evidence.transcript.complete:
        return RawCheck(passed=False, message="the share of read-only tool calls was not measured")
    calls, tolerance = evidence.calls(refused=False), options.exploration_tolerance
    wanted = f"expected {target:g} ± {tolerance:g}"
    if not calls:
        missing = "there are no tool calls, so the share of read-only calls is undefined"
        return RawCheck(passed=False, message=f"{missing}, {wanted}")
    ratio = sum(call.tool in EXPLORING_TOOLS for call in calls) / len(calls)
    distance = abs(ratio - target)
    passed = distance <= tolerance or math.isclose(distance, tolerance)
    return RawCheck(passed=passed, message=f"the share of read-only tool calls is {ratio:.4g}, {wanted}")
