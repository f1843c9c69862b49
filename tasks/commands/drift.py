"""Drift: the run of a plan and its history in, the lasting falls that could not be seen before this run out."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from passgate.tasks.commands.trend import COLUMNS, TrendRequest, trend_of
from passgate.tasks.commands.trend_changes import newest_changes
from passgate.tasks.errors import PassgateError
from passgate.tasks.integrity.earlier_runs import open_history, read_earlier_summaries
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import warn
from passgate.tasks.reports.trend import change_text

_NAME = 120


def drift_of(plan: Plan) -> tuple[str, ...]:
    """What the run of a plan, which is in the history by now, tells of a drift, each fall in a line; nothing where the
    gate's policy does not ask.

    No verdict depends on it: a history that cannot be read is a warning.
    """
    alarm = plan.gate_policy.alarm
    if alarm is False or not alarm.drift:
        return ()
    try:
        history = open_history(plan.history_location, Checkout(Path.cwd()))
        summaries = read_earlier_summaries(history, Path.cwd(), datetime.now(UTC), COLUMNS).table
        return falls_told_by(plan.run_id, summaries, plan.gate, str(plan.agent))
    except PassgateError as error:
        warn(f"cannot look for drift: {error}. The verdict does not depend on it")
        return ()


def falls_told_by(run_id: str, summaries: pa.Table, gate: GateName, agent: str) -> tuple[str, ...]:
    """The changes for the worse that one run is the first to show, as `passgate trend` words them.

    Raises `UsageError` where the summaries have no run of the gate and agent.
    """
    changes = trend_of(summaries, TrendRequest(gate=gate, agent=agent)).changes
    told = newest_changes(changes, run_id)
    return tuple(change_text(change, lambda name: printable(name, _NAME)) for change in told if change.is_worse)
