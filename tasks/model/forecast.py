"""What a gate will do before it is switched on, and what it has done in many runs of an agent that did not change."""

from typing import Literal

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName, Suite

FALLS = (0.9, 0.7, 0.5)  # The pass rates that a task may fall to, for which a forecast says how surely that is caught
AGENT_FALLS = (0.95, 0.9, 0.8)
"""The shares of its pass rates that a whole agent may keep, for which a forecast says how often the gate is red."""
TARGET = 0.02  # False reds that a team puts up with


class Catch(Frozen):
    """How surely one task that falls makes the gate red by its own failure.

    Over the tasks that can do so, and that passed more often before. A share is `None` where there are none.
    """

    pass_rate: float
    """What the task falls to."""
    tasks: int
    mean: float | None
    worst: float | None
    worst_task: str = ""
    strict_mean: float | None
    """The same of the strict rule: any failed task blocks."""
    strict_worst: float | None


class AgentFall(Frozen):
    """How often the gate is red if the whole agent falls: every task passes this share of what it passed."""

    share: float
    red: float
    strict_red: float


class Cause(Frozen):
    """What makes the gate red on an unchanged agent."""

    rule: Rule
    suite: Suite | None = None
    """Of a threshold, and of a suite that has fallen as a whole."""
    task: str = ""
    """`suite/task_id`; empty for a rule that is not of one task."""
    chance: float
    """How often it blocks."""
    share: float
    """Of all chances of this kind together."""


class Effort(Frozen):
    """What a verdict costs."""

    planned: int
    """Trials: k of every task."""
    confirming: float
    """Trials beyond them that failed tasks are expected to get."""
    saved: float
    """Of the planned trials those that are expected to be left out, if the trials of a task run one after the other."""
    cost: float | None = None
    """US dollars of the agent; `None` where no trial's cost is known."""
    seconds: float | None = None
    """With as many trials at once as the policy says; `None` where no trial's time is known."""

    @property
    def trials(self) -> float:
        """Expected in all."""
        return self.planned + self.confirming - self.saved


class TaskForecast(Frozen):
    """One task in one run of an unchanged agent."""

    task: str
    """`suite/task_id`."""
    k: int
    pass_rate: float
    passed: int | None = None
    """Of `n` trials at the baseline; `None` where the rate is given."""
    n: int | None = None
    state: str
    """How it stands at the baseline; `as assumed` where there is none."""
    withheld: float
    """The chance that it may not block: not admitted, or in quarantine."""
    red: float
    """The chance that it blocks."""
    can_block: bool
    """Whether it makes the gate red by its failure if it falls deep enough."""


class Change(Frozen):
    """One change of the policy."""

    what: str
    """As in `regression.mode: strict -> evidence`."""
    file: Literal["gates.yaml", "quarantine.yaml"]
    lines: tuple[str, ...]
    """The lines that the file says it in."""


class Advice(Frozen):
    """The smallest change of policy that brings false reds down, and its price."""

    changes: tuple[Change, ...]
    """One or two; none where no change helps."""
    reaches_target: bool
    red: float
    catches: tuple[Catch, ...]
    effort: Effort


class CurvePoint(Frozen):
    """How often the gate is red when one task passes so often and all others are unchanged."""

    pass_rate: float
    red: float
    """The mean over the tasks that can block by falling."""
    strict_red: float


class Forecast(Frozen):
    """What a gate will do: all of `passgate forecast --json`."""

    schema_version: int = 1
    gate: GateName
    agent: str
    rates: Literal["history", "assumed", "file", "burn-in"]
    """Where the pass rates come from."""
    baseline_runs: int
    """Runs that the baseline is made of; 0 where it is what `policy.baseline.runs` runs of such an agent would give."""
    red: float
    """How often the gate is FAIL on an unchanged agent."""
    inconclusive: float
    """How often it is INCONCLUSIVE, waiting for a sign-off aside."""
    strict_red: float
    """How often the strict rule would make it red: any failed task blocks."""
    catches: tuple[Catch, ...]
    agent_falls: tuple[AgentFall, ...] = ()
    red_error: float = 0.0
    """The standard error of `red`."""
    run_spread: float = 0.0
    """The standard deviation of the pass rates between whole runs; 0 where the history shows none beyond chance."""
    effort: Effort
    rules: tuple[Cause, ...]
    """By rule, the most frequent first."""
    causes: tuple[Cause, ...]
    """By rule and task, the most frequent first."""
    target: float = TARGET
    advice: Advice | None = None
    """`None` where false reds are within the target."""
    tasks: tuple[TaskForecast, ...]
    curve: tuple[CurvePoint, ...]
    simulated: int
    """Runs of the gate that were simulated for each figure of it."""
    seed: int
    notes: tuple[str, ...] = ()


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
