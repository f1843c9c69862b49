"""The metrics of one trial: the columns that `tracked_metrics` names."""

from passgate.tasks.model.base import Frozen


class TrialMetrics(Frozen):
    """Every metric of one trial; `None` where it was not measured."""

    tokens_in: int | None = None
    """Those from the provider's cache included."""
    tokens_cached: int | None = None
    """Of `tokens_in`, those that were read from the provider's cache."""
    tokens_out: int | None = None
    total_tokens: int | None = None
    wall_time_seconds: float | None = None
    p95_step_latency_ms: float | None = None
    time_to_first_token: float | None = None
    """Seconds to the first token of the first step."""
    tool_call_count: int | None = None
    tool_error_rate: float | None = None
    """Share of the tool calls that ended in an error."""
    steps: int | None = None
    n_turns: int | None = None
    """Messages of the user, each of which opens a turn."""
    loop_rate: float | None = None
    """Share of the tool calls that repeat an earlier one, arguments and all."""
    retry_rate: float | None = None
    """Share of the tool calls that repeat a call that had just failed."""
    cost: float | None = None
    """US dollars."""


class MeanMetrics(Frozen):
    """The means of a task's metrics over its trials; `None` where no trial measured one."""

    tokens_in: float | None = None
    tokens_cached: float | None = None
    tokens_out: float | None = None
    total_tokens: float | None = None
    wall_time_seconds: float | None = None
    p95_step_latency_ms: float | None = None
    time_to_first_token: float | None = None
    tool_call_count: float | None = None
    tool_error_rate: float | None = None
    steps: float | None = None
    n_turns: float | None = None
    loop_rate: float | None = None
    retry_rate: float | None = None
    cost: float | None = None


METRIC_GROUPS: dict[str, tuple[str, ...]] = {
    "tokens": ("tokens_in", "tokens_cached", "tokens_out", "total_tokens"),
    "latency": ("wall_time_seconds", "p95_step_latency_ms", "time_to_first_token"),
    "tool_use": ("tool_call_count", "tool_error_rate"),
    "trajectory": ("steps", "n_turns", "loop_rate", "retry_rate"),
    "cost": ("cost",),
}
