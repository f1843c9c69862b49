"""What the history says of one suite in one run."""

from datetime import datetime

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.task import GateName, Suite


class TrendPoint(Frozen):
    """One suite of one stored run."""

    run_id: str
    gate: GateName
    suite: Suite
    started_at: datetime
    """UTC."""
    agent: str
    tasks: int
    trials_passed: int
    trials_measured: int
    trials_error: int
    value: float | None
    """The mean over the tasks of each task's own metric, from 0 to 1; `None` when too little was measured."""
    low: float | None
    """Lower end of the 95 % interval of `value`."""
    high: float | None
    cost: float | None
    """Sum in US dollars; `None` when no trial's cost is known."""
    latency_p95_seconds: float | None
