"""What is known of one attempt at a trial while it is made: it is recorded however the attempt ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from passgate.tasks.metering.charged_judge import CountingJudge
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import Trial, TrialMetrics, joined_models

_LEAST_DOLLARS: Final = 1e-9
"""Less is rounding: costs are sums of fractions of cents."""


@dataclass(slots=True)
class TrialRecord:
    """One attempt: its trial so far, its transcript, and what it has cost."""

    trial: Trial
    judge: CountingJudge | None
    transcript: Transcript = field(default_factory=Transcript)
    agent_paid: float = 0.0
    """US dollars of the run's money."""

    def said(self, transcript: Transcript, metrics: TrialMetrics, isolation: str) -> None:
        """The agent has done its part."""
        self.transcript = transcript
        update = {
            "player_cost": _player_cost(transcript),
            "metrics": metrics,
            "model": joined_models(step.model for step in transcript.steps),
            "isolation": isolation,
        }
        self.trial = self.trial.model_copy(update=update)

    def ended(self, update: Mapping[str, Any]) -> Trial:
        """The trial as it is recorded, with what was paid beside what it says itself."""
        trial = self.trial.model_copy(update=update)
        of_agent = max(0.0, self.agent_paid - (trial.metrics.cost or 0.0))
        of_judge = max(0.0, (self.judge.paid if self.judge else 0.0) - (trial.judge_cost or 0.0))
        beside = (trial.unmeasured_cost or 0.0) + of_agent + of_judge
        return trial.model_copy(update={"unmeasured_cost": beside if beside > _LEAST_DOLLARS else None})


def _player_cost(transcript: Transcript) -> float | None:
    costs = [said.usage.cost_usd for said in transcript.messages if said.role == "user"]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
