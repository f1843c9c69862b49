"""Drift: the run of a plan and its history in, the lasting falls that could not be seen before this run out."""

from pathlib import Path
from typing import TYPE_CHECKING

from passgate.tasks.errors import PassgateError
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.model.run import Plan
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from passgate.tasks.model.history import Trend

_NAME = 120


def drift_of(plan: Plan) -> tuple[str, ...]:
    """Return the drift that the run of a plan shows, one line for each fall, if the gate's policy asks for it.

    The run is in the history already.

    No verdict depends on it: a history that cannot be read is a warning.
    """
    alarm = plan.gate_policy.alarm
    if alarm is False or not alarm.drift:
        return ()
    # Few gates look for drift.
    from passgate.tasks.commands.trend import TrendRequest, read_trend

    try:
        history = open_history(plan.history_location, Checkout(Path.cwd()))
        trend = read_trend(history, TrendRequest(gate=plan.gate, agent=str(plan.agent)))
        return new_falls(plan.run_id, trend)
    except PassgateError as error:
        warn(f"cannot look for drift: {error}. The verdict does not depend on it")
        return ()


def new_falls(run_id: str, trend: "Trend") -> tuple[str, ...]:
    """Return the changes for the worse that a run is the first to show, as `passgate trend` words them."""
    from passgate.tasks.commands.trend_changes import newest_changes
    from passgate.tasks.reports.trend import change_text

    changes = newest_changes(trend.changes, run_id)
    return tuple(change_text(change, lambda name: printable(name, _NAME)) for change in changes if change.is_worse)
