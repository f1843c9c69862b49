"""Which budgets a trial has overrun."""

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import TrialMetrics

_ROUNDING = 1 + 1e-9
"""Costs are sums of fractions of cents."""


def overruns(budgets: Budgets, metrics: TrialMetrics, transcript: Transcript) -> tuple[str, ...]:
    """A line for every budget that was overrun.

    Raises `MeasurementError` when none is certain, there is a cost budget and the cost is not known: unknown is
    not free.
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
