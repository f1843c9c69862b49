"""What every grader is given, and what an agent has to report for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.grade import LlmJudge
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialMetrics


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


class UnreportedError(MeasurementError):
    """Something of a trial is not known, because nobody has reported it. The text says what."""


UNKNOWN_CALLS: Final = "the agent does not report its tool calls"
_METER: Final = "Send the agent's model calls through the passgate meter"
_FILE: Final = "have the agent write its transcript, with usage and times, to the file that PASSGATE_TRANSCRIPT names"
_RETURNED: Final = "return a transcript, with usage and times, from its function"
_REMEDIES: Final = {
    AgentKind.CLI: f"{_METER}, or {_FILE}",
    AgentKind.PYTHON: f"{_METER}, or {_RETURNED}",
    AgentKind.HTTP: "In agents.yaml, name the fields of the reply that hold them: `http.tool_calls` with "
    "`http.complete: true`, "
    "`http.tokens_in`, `http.tokens_out`, `http.cost_usd`",
}


def remedy_for(kind: AgentKind | None) -> str:
    """How an agent of a kind reports what is not known of its trials."""
    if kind is None:
        return f"{_METER}, {_FILE}, or {_RETURNED}"
    return _REMEDIES.get(kind, "Use a recording that contains it")
