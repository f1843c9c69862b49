"""What a forecast is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from passgate.tasks.forecasts.assumed import Possible, TrialRule, assumed_baseline
from passgate.tasks.forecasts.first_trials import Trials
from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Policy, Rule
from passgate.tasks.model.run import Plan


@dataclass(frozen=True)
class Prospect:
    """One task and how the agent does it."""

    failed: TaskMeasurement
    """The task as it is measured when it has failed."""
    rate: float
    """How many of its measured trials pass."""
    errors: float = 0.0
    """How many of its trials cannot be measured."""
    violations: Mapping[Rule, float] = field(default_factory=dict)
    """How many of its measured trials violate each rule."""
    known: BaselineTask | None = None
    """Its baseline; where there is none, it is what runs of such an agent would give."""
    safety: bool = False
    """Whether it guards safety, so that no quarantine is for it."""

    @property
    def name(self) -> str:
        """`suite/task_id`."""
        return self.failed.name

    @property
    def rule(self) -> TrialRule:
        return TrialRule(self.failed.k, self.failed.metric, self.failed.sequential)

    def trials(self, policy: GatePolicy, fallen_to: float | None = None) -> Trials:
        """What its trials come to; those of a task that has fallen violate nothing."""
        measured = 1 - self.errors
        if fallen_to is not None:
            return Trials(fallen_to * measured, errors=self.errors)
        vetoes = sum(share for rule, share in self.violations.items() if rule in policy.blocks_on)
        violated = min(vetoes, 1 - self.rate)
        return Trials(self.rate * measured, violated * measured, self.errors)

    def baselines(self, policy: Policy, gate: GatePolicy) -> tuple[Possible, ...]:
        """The baselines that it may have."""
        if self.known is not None:
            return (Possible(self.known, 1.0),)
        return assumed_baseline(self.rule, self.rate, policy.baseline.runs, gate.admission or None)

    def with_k(self, k: int, policy: Policy) -> "Prospect":
        """The same task with another number of trials."""
        sequential = policy.suites[self.failed.suite].sequential_for(k, self.failed.metric)
        changed = {"k": k, "planned": k, "failed": k, "sequential": sequential}
        return replace(self, failed=self.failed.model_copy(update=changed))


@dataclass(frozen=True)
class Setting:
    """A plan and its tasks as the forecast sees them: what a change of the files changes."""

    plan: Plan
    prospects: tuple[Prospect, ...]

    @property
    def branch(self) -> str:
        return self.plan.policy.baseline.branch
