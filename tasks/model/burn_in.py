"""What a gate has done in many runs of an agent that did not change."""

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.forecast import Cause, Forecast
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.task import GateName


class BurnIn(Frozen):
    """All of `passgate burn-in --json`. Figures are means over the runs that were judged."""

    schema_version: int = 1
    gate: GateName
    agent: str
    folder: str
    """Where the trials are."""
    asked: int
    """Runs."""
    first: int
    """Of the finished runs those that made the baseline and were not judged; 0 where the history has one."""
    judged: int
    red: int
    """Of the judged runs those that were FAIL."""
    inconclusive: int
    red_interval: Interval
    """Of the share of red runs; 95 % (Wilson)."""
    trials: float
    """Trials that were run, confirming ones included."""
    confirming: float
    saved: float
    """Planned trials that were left out."""
    cost: float | None
    """US dollars of the agent; `None` where no trial's cost is known."""
    spent: float
    """US dollars in all, of all runs and of the judge too, as far as they are known."""
    rules: tuple[Cause, ...]
    """In how many of the judged runs each rule has blocked."""
    causes: tuple[Cause, ...]
    """By rule and task."""
    forecast: Forecast
    """At the measured pass rates and against the same baseline."""
    why_ended: str = ""
    """Why not all runs were finished; empty where they were."""
