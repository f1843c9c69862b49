"""What every grader is given, and what an agent has to report for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.grade import LlmJudge, RawGrade
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics

_METER: Final = "Send the agent's model calls through the passgate meter"
_FILE: Final = "have the agent write its transcript, with usage and times, to the file that PASSGATE_TRANSCRIPT names"
_RETURNED: Final = "return a transcript, with usage and times, from its function"
_REMEDIES: Final = {
    AgentKind.CLI: f"{_METER}, or {_FILE}",
    AgentKind.PYTHON: f"{_METER}, or {_RETURNED}",
    AgentKind.HTTP: "In agents.yaml, name the fields of the reply that hold them: `http.tool_calls` with "
    "`http.complete: true`, `http.tokens_in`, `http.tokens_out`, `http.cost_usd`",
}


class UnreportedError(MeasurementError):
    """Nobody has reported something of a trial that a grader needs. The text says what."""


def remedy_for(kind: AgentKind | None) -> str:
    """How an agent of a kind reports what is not known of its trials."""
    if kind is None:
        return f"{_METER}, {_FILE}, or {_RETURNED}"
    return _REMEDIES.get(kind, "Use a recording that contains it")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One finished trial: what the agent said and did, and the state that it left behind."""

    task: EvalTask
    transcript: Transcript
    metrics: TrialMetrics
    sandbox: Sandbox
    suites_folder: Path
    masker: Masker  # Of the run's secrets
    judge: LlmJudge | None  # `None` when no judge is configured
    agent_kind: AgentKind | None = None  # Of the agent that had the trial; `None` where that is not known

    @property
    def made_calls(self) -> list[ToolCall]:
        """The tool calls that were not refused."""
        return [call for call in self.transcript.tool_calls if not call.refused]

    def require_every_call(self, *, unless: bool = False) -> None:
        """Raises `UnreportedError` when the transcript may lack a call, unless the result is certain whatever it is."""
        if not self.transcript.complete and not unless:
            raise UnreportedError("the agent does not report its tool calls")


GradeFunction = Callable[[Any, Evidence], Awaitable[RawGrade]]
"""Computes the bare grade of one type of grader from its options and a trial."""
