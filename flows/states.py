"""The final states of flow runs and task runs in Prefect, with what a reader needs to act."""

import platform
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Crashed, Failed

from passgate.flows.process.interrupts import InterruptionError
from passgate.tasks.errors import first_known
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.findings import reason_subject

WITHOUT_VERDICT = ("GateNotRun", "GateCrashed", "Cancelled")
"""The states of a flow without a verdict. They contain the exception that says why."""
MAY_CHANGE = ("GateNotRun", "GateInconclusive")  # The states that another attempt at the same run can change
LONGEST_MESSAGE = 4000
_LONGEST_LINE = 500
_NAMED_REASONS = 20


def verdict_state(verdict: Verdict) -> State[Any]:
    """Return the state of a flow with a verdict."""
    message = "\n".join(verdict_lines(verdict))[:LONGEST_MESSAGE]
    match verdict.decision:
        case Decision.PASS if verdict.alarms:
            return Failed(name="GateAlarm", message=message)
        case Decision.PASS:
            return Completed(name="GatePassed", message=message)
        case Decision.FAIL:
            return Failed(name="GateFailed", message=message)
        case Decision.INCONCLUSIVE if verdict.awaiting_sign_off:
            return Failed(name="AwaitingSignOff", message=message)
        case Decision.INCONCLUSIVE:
            return Failed(name="GateInconclusive", message=message)


def error_state(error: Exception) -> State[Any]:
    """Return the state of a flow without a verdict: `GateNotRun` for an expected error, else a crash."""
    known = first_known(error)
    if known is not None:
        return Failed(name="GateNotRun", message=str(known), data=known)
    return Crashed(name="GateCrashed", message=f"{type(error).__name__}: {error}", data=error)


def cancelled_state(gate: GateName, run_id: str, message: str, *, in_prefect: bool) -> State[Any]:
    """Return the state of a flow that was cancelled in Prefect or by a signal to its command."""
    by_signal = f"interrupted; resume the run with `passgate run {gate} --resume {run_id}`"
    text = f"cancelled in Prefect; {message}" if in_prefect else by_signal
    return Cancelled(message=message, data=InterruptionError(text))


def step_state(fault: StepFault | None, masker: Masker) -> State[Any]:
    """Return the state of a task run. Its name tells errors from failures."""
    if fault is None:
        return Completed()
    name = "TaskFailed" if fault.is_measured else "NotMeasured"
    return Failed(name=name, message=masker.text(fault.message)[:LONGEST_MESSAGE])


def verdict_lines(verdict: Verdict) -> tuple[str, ...]:
    """Return lines with the headline, the run and its folder, the alarms and the blocking reasons."""
    lines = [verdict.headline, f"run {run_place(verdict.run_id)}"]
    lines += [f"alarm: {alarm.message}" for alarm in verdict.alarms[:_NAMED_REASONS]]
    blocking = [reason for reason in verdict.reasons if reason.blocking]
    for reason in blocking[:_NAMED_REASONS]:
        subject = reason_subject(reason)
        lines.append(f"{reason.rule}{subject and f', {subject}'}: {reason.message}")
    if len(blocking) > _NAMED_REASONS:
        lines.append(f"and {len(blocking) - _NAMED_REASONS} more")
    return tuple(printable(line, _LONGEST_LINE) for line in lines)


def run_place(run_id: str) -> str:
    """Return a run and its place as `ID, kept in FOLDER on HOST`."""
    location = RunStore.of(run_id).location
    host = "" if "://" in location else f" on {platform.node()}"
    return f"{run_id}, kept in {location}{host}"
