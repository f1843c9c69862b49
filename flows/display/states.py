"""The states that flow runs and task runs of Prefect end in, with what a reader needs to act."""

import json
import platform
from collections.abc import Iterator
from typing import Any

from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Crashed, Failed

from passgate.flows.process.interrupts import InterruptionError
from passgate.tasks.errors import first_known
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.findings import reason_subject

WITHOUT_VERDICT = ("GateNotRun", "GateCrashed", "Cancelled")
"""The states of a flow whose gate has come to no verdict; they hold the exception that says why."""
MAY_CHANGE = ("GateNotRun", "GateInconclusive")
"""The states of a flow that another attempt at the same run can change."""
LONGEST_MESSAGE = 4000
_LONGEST_LINE = 500
_NAMED_REASONS = 20


def judged(verdict: Verdict) -> State[Any]:
    """The state of a flow that has ended with a verdict."""
    message = "\n".join(in_words(verdict))[:LONGEST_MESSAGE]
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


def not_judged(error: Exception) -> State[Any]:
    """The state of a flow without a verdict: `GateNotRun` where the input or the machine is to blame, else a crash."""
    known = first_known(error)
    if known is not None:
        return Failed(name="GateNotRun", message=str(known), data=known)
    return Crashed(name="GateCrashed", message=f"{type(error).__name__}: {error}", data=error)


def cancelled(gate: GateName, run_id: str, message: str, *, in_prefect: bool) -> State[Any]:
    """The state of a flow that somebody has cancelled in Prefect, or by a signal to its command."""
    by_signal = f"interrupted; carry the run on with `passgate run {gate} --resume {run_id}`"
    told = f"cancelled in Prefect; {message}" if in_prefect else by_signal
    return Cancelled(message=message, data=InterruptionError(told))


def how_to_resume(gate: GateName, run_id: str) -> str:
    """How a run that was stopped goes on, in a shell and in Prefect."""
    parameter = json.dumps({"run": run_id})
    return f"carry it on with `passgate run {gate} --resume {run_id}`, or with the parameter request={parameter}"


def of_step(fault: StepFault | None, masker: Masker) -> State[Any]:
    """The state of a task run whose step has ended: errors are told from failures by the name."""
    if fault is None:
        return Completed()
    name = "TaskFailed" if fault.is_measured else "NotMeasured"
    return Failed(name=name, message=masker.text(fault.message)[:LONGEST_MESSAGE])


def in_words(verdict: Verdict) -> tuple[str, ...]:
    """The headline, the run with its place, the alarms and the reasons that block, each in a line."""
    alarms = (printable(f"alarm: {alarm.message}", _LONGEST_LINE) for alarm in verdict.alarms[:_NAMED_REASONS])
    return (printable(verdict.headline, _LONGEST_LINE), f"run {kept(verdict.run_id)}", *alarms, *_blocking(verdict))


def kept(run_id: str) -> str:
    """A run and where it is kept, as in `ID, kept in FOLDER on HOST`."""
    location = RunStore.of(run_id).location
    host = "" if "://" in location else f" on {platform.node()}"
    return f"{run_id}, kept in {location}{host}"


def _blocking(verdict: Verdict) -> Iterator[str]:
    blocking = [reason for reason in verdict.reasons if reason.blocking]
    for reason in blocking[:_NAMED_REASONS]:
        subject = reason_subject(reason)
        place = f"{reason.rule}, {subject}" if subject else str(reason.rule)
        yield printable(f"{place}: {reason.message}", _LONGEST_LINE)
    if len(blocking) > _NAMED_REASONS:
        yield f"and {len(blocking) - _NAMED_REASONS} more"
