"""What every grader is given."""

from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.llm_judge import LlmJudge
from passgate.tasks.model.metrics import TrialMetrics
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One finished trial: what the agent said and did, and the state that it left behind."""

    task: EvalTask
    transcript: Transcript
    metrics: TrialMetrics
    sandbox: Sandbox
    suites_folder: Path
    judge: LlmJudge | None
    """`None` when no judge is configured."""
    agent_kind: AgentKind | None = None
    """Of the agent that had the trial; `None` where that is not known."""
