"""Limits on how the agent went about it."""

import math
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from passgate.tasks.graders.checks import graded
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.unreported import UnreportedError
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import TrajectoryMetrics
from passgate.tasks.model.metrics import TrialMetrics

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


class Limit(NamedTuple):
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
    checks = [_check(limit, evidence.metrics) for limit in limits]
    broken = any(not check.passed for check, limit in zip(checks, limits, strict=True) if limit.metric not in missing)
    if missing and not broken:
        names = ", ".join(dict.fromkeys(missing))
        raise UnreportedError(f"not measured: {names}")
    return graded(options, checks)


def _limits(options: TrajectoryMetrics) -> Iterator[Limit]:
    for option, metric in METRIC_OF_OPTION.items():
        value = getattr(options, option)
        if value is not None:
            yield Limit(metric, "at least" if option.startswith("min_") else "at most", value)


def _measured(metric: str, metrics: TrialMetrics) -> float | None:
    value: float | None = getattr(metrics, metric)
    return None if value is None or math.isnan(value) else value


def _check(limit: Limit, metrics: TrialMetrics) -> Check:
    value = _measured(limit.metric, metrics)
    expected = f"expected {limit.bound} {limit.value:g}"
    if value is None:
        return Check(passed=False, message=f"{limit.metric} was not measured, {expected}")
    passed = value <= limit.value if limit.bound == "at most" else value >= limit.value
    return Check(passed=passed, message=f"{limit.metric} is {value:g}, {expected}")
