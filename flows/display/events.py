"""Emit Prefect events for automations. Their resource is the run."""

from collections.abc import Sequence

from prefect.events import emit_event

from passgate.flows.display.states import run_place, verdict_lines
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import AlarmKind, Decision, Verdict

VERDICT, SIGN_OFF_PENDING, DRIFT = "passgate.verdict", "passgate.sign-off-pending", "passgate.drift"
_LONGEST_LABEL = 500


def emit_verdict(verdict: Verdict, masker: Masker) -> None:
    """Emit the verdict of a run, and events for a pending sign-off and for drift alarms."""
    labels = verdict_labels(verdict)
    lines = [masker.text(line) for line in verdict_lines(verdict)]
    _emit(VERDICT, verdict, labels, lines)
    if verdict.awaiting_sign_off:
        _emit(SIGN_OFF_PENDING, verdict, labels, lines)
    drifts = [masker.text(alarm.message) for alarm in verdict.alarms if alarm.kind is AlarmKind.DRIFT]
    if drifts:
        emit_drift(verdict.gate, verdict.run_id, verdict.agent, drifts)


def verdict_labels(verdict: Verdict) -> dict[str, str]:
    """Return the labels of a verdict for automations: decision, kinds of alarms, and whether any of them is bad."""
    red = verdict.decision is not Decision.PASS or bool(verdict.alarms)
    return {
        "passgate.decision": str(verdict.decision),
        "passgate.alarms": ",".join(sorted({str(alarm.kind) for alarm in verdict.alarms})) or "none",
        "passgate.red": str(red).lower(),
    }


def emit_drift(gate: GateName, run_id: str, agent: str, findings: Sequence[str]) -> None:
    """Emit that the history has drifted, as of this run, with the findings as text."""
    _emit_run_event(DRIFT, gate, run_id, {"passgate.agent": agent[:_LONGEST_LABEL]}, list(findings))


def _emit(event: str, verdict: Verdict, labels: dict[str, str], lines: list[str]) -> None:
    agent = {"passgate.agent": verdict.agent[:_LONGEST_LABEL]}
    _emit_run_event(event, verdict.gate, verdict.run_id, labels | agent, lines)


def _emit_run_event(event: str, gate: GateName, run_id: str, labels: dict[str, str], lines: list[str]) -> None:
    resource = {
        "prefect.resource.id": f"passgate.run.{run_id}",
        "prefect.resource.name": run_id,
        "passgate.gate": str(gate),
        **labels,
    }
    emit_event(event=event, resource=resource, payload={"run": run_place(run_id), "told": lines})
