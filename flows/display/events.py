"""The events of a run in Prefect, for automations: the run is their resource."""

from collections.abc import Sequence

from prefect.events import emit_event

from passgate.flows.display.states import in_words, kept
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import AlarmKind, Decision, Verdict

VERDICT, SIGN_OFF_PENDING, DRIFT = "passgate.verdict", "passgate.sign-off-pending", "passgate.drift"
_LONGEST_LABEL = 500


def emit_verdict(verdict: Verdict, masker: Masker) -> None:
    """Tell the verdict of a run, that it awaits a sign-off, and that its history has drifted, where this is so."""
    labels = labels_of(verdict)
    told = [masker.text(line) for line in in_words(verdict)]
    _emit(VERDICT, verdict, labels, told)
    if verdict.awaiting_sign_off:
        _emit(SIGN_OFF_PENDING, verdict, labels, told)
    drifts = [masker.text(alarm.message) for alarm in verdict.alarms if alarm.kind is AlarmKind.DRIFT]
    if drifts:
        emit_drift(verdict.gate, verdict.run_id, verdict.agent, drifts)


def labels_of(verdict: Verdict) -> dict[str, str]:
    """What automations can ask of a verdict: its decision, the kinds of its alarms, whether there is bad news."""
    red = verdict.decision is not Decision.PASS or bool(verdict.alarms)
    return {
        "passgate.decision": str(verdict.decision),
        "passgate.alarms": ",".join(sorted({str(alarm.kind) for alarm in verdict.alarms})) or "none",
        "passgate.red": str(red).lower(),
    }


def emit_drift(gate: GateName, run_id: str, agent: str, told: Sequence[str]) -> None:
    """Tell that the history has drifted by this run of it, with the findings in words."""
    _emit_of_run(DRIFT, gate, run_id, {"passgate.agent": agent[:_LONGEST_LABEL]}, list(told))


def _emit(event: str, verdict: Verdict, labels: dict[str, str], told: list[str]) -> None:
    agent = {"passgate.agent": verdict.agent[:_LONGEST_LABEL]}
    _emit_of_run(event, verdict.gate, verdict.run_id, labels | agent, told)


def _emit_of_run(event: str, gate: GateName, run_id: str, labels: dict[str, str], told: list[str]) -> None:
    resource = {
        "prefect.resource.id": f"passgate.run.{run_id}",
        "prefect.resource.name": run_id,
        "passgate.gate": str(gate),
        **labels,
    }
    emit_event(event=event, resource=resource, payload={"run": kept(run_id), "told": told})
