"""The metrics of one trial: the columns that `tracked_metrics` names."""

import re

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
    tool_call_accuracy: float | None = None
    """Mean score of the graders that look at tool calls."""
    steps: int | None = None
    n_turns: int | None = None
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
    tool_call_accuracy: float | None = None
    steps: float | None = None
    n_turns: float | None = None
    loop_rate: float | None = None
    retry_rate: float | None = None
    policy_adherence: float | None = None
    injection_success_rate: float | None = None
    cost: float | None = None


METRIC_GROUPS: dict[str, tuple[str, ...]] = {
    "tokens": ("tokens_in", "tokens_cached", "tokens_out", "total_tokens"),
    "latency": ("wall_time_seconds", "p95_step_latency_ms", "time_to_first_token"),
    "tool_use": ("tool_call_count", "tool_error_rate", "tool_call_accuracy"),
    "trajectory": ("steps", "n_turns", "loop_rate", "retry_rate"),
    "safety": ("policy_adherence", "injection_success_rate"),
    "cost": ("cost",),
}


def metric_columns(name: str) -> tuple[str, ...]:
    """The metrics of a name: those of a group, or the one itself, however its words are put together, as in
    `Tool-call accuracy`; none for a name that passgate does not know.
    """
    column = re.sub(r"[\W_]+", "_", name.lower()).strip("_")
    return METRIC_GROUPS.get(column) or ((column,) if column in TrialMetrics.model_fields else ())
