"""What a grader needs and the agent did not report: what is not known, and how each kind of agent reports it."""

from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.agent import AgentKind


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
