"""Prefect as the engine: steps are task runs of a flow run, the verdict is its state, its log, a table and an event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from prefect import get_run_logger, task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import TagsContext
from prefect.events import emit_event
from prefect.states import Completed, Crashed, Failed

from passgate.flows.evaluate import evaluate
from passgate.flows.process.interrupts import cancelled_by_sigterm
from passgate.tasks.errors import PassgateError, first_known
from passgate.tasks.execution.engine import Work, no_fault
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.reports.markdown import markdown

T = TypeVar("T")

SECONDS_TO_PUBLISH = 10.0
WITHOUT_VERDICT = ("GateNotRun", "GateCrashed")
"""The states of a flow whose gate has come to no verdict; they hold the exception that says why."""
_LONGEST_MESSAGE = 4000
_NAMED_REASONS = 20


class PrefectEngine:
    """Steps as Prefect tasks, inside of a flow run. What goes wrong with Prefect is logged, and changes nothing."""

    async def step(self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], str] = no_fault) -> T:
        """Do a step as a task run. Its result never passes through Prefect, which stores and caches nothing."""
        results: list[asyncio.Future[T]] = []

        async def shown() -> State[Any]:
            results.append(asyncio.ensure_future(work()))
            try:
                why = fault(await results[0])
            except PassgateError as error:
                # Prefect prints the traceback of what is raised, and this is a message for a user.
                why = str(error)
            return Failed(message=why[:_LONGEST_MESSAGE]) if why else Completed()

        as_task = task(name=name, task_run_name=_as_run_name(run_name or name), cache_policy=NO_CACHE)(shown)
        # A task run with a tag asks the server for a slot of concurrency before it begins.
        with TagsContext(current_tags=set()):
            shown_as: Awaitable[Any] = as_task(return_state=True)  # type: ignore[assignment]
            await _unharmed(shown_as, f"the task run {name!r} is not shown")
        return await (results[0] if results else work())

    async def publish(self, verdict: Verdict) -> None:
        """The verdict in the log, as an event for automations, and as a table for the gate."""
        await _unharmed(_published(verdict), "the verdict is not shown as an artifact")


async def _unharmed(showing: Awaitable[object], without: str) -> None:
    try:
        await showing
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
        get_run_logger().warning("%s: %s", without, error)


async def evaluate_in_flow(
    gate: GateName, request: RunRequest, settle: Callable[[Verdict], Awaitable[Verdict]] | None = None
) -> State[Any]:
    """Run a gate inside of a flow run; gives the state that the flow run ends in, by the verdict or by what `settle`
    makes of it.
    """
    engine = PrefectEngine()
    try:
        with cancelled_by_sigterm():
            verdict = await evaluate(gate, request, engine)
            settled = verdict if settle is None else await settle(verdict)
    except Exception as error:  # noqa: BLE001 - whoever called gets the exception with the state
        return _not_judged(error)
    if settled != verdict:
        await engine.publish(settled)
    return _judged(settled)


def _judged(verdict: Verdict) -> State[Any]:
    """The state of a flow that has ended with a verdict."""
    message = "\n".join(_in_words(verdict))[:_LONGEST_MESSAGE]
    match verdict.decision:
        case Decision.PASS:
            return Completed(name="GatePassed", message=message)
        case Decision.FAIL:
            return Failed(name="GateFailed", message=message)
        case Decision.INCONCLUSIVE if verdict.awaiting_sign_off:
            return Failed(name="AwaitingSignOff", message=message)
        case Decision.INCONCLUSIVE:
            return Failed(name="GateInconclusive", message=message)


def _not_judged(error: Exception) -> State[Any]:
    """The state of a flow without a verdict: `GateNotRun` where the input or the machine is to blame, else a crash."""
    known = first_known(error)
    if known is not None:
        return Failed(name="GateNotRun", message=str(known), data=known)
    return Crashed(name="GateCrashed", message=f"{type(error).__name__}: {error}", data=error)


def _in_words(verdict: Verdict) -> list[str]:
    """The headline, the run, and the reasons that block."""
    blocking = [reason.message for reason in verdict.reasons if reason.blocking]
    more = [f"and {len(blocking) - _NAMED_REASONS} more"] if len(blocking) > _NAMED_REASONS else []
    return [verdict.headline, f"run {verdict.run_id}", *blocking[:_NAMED_REASONS], *more]


async def _published(verdict: Verdict) -> None:
    log = get_run_logger()
    for line in _in_words(verdict):
        log.info(line)
    key = f"gate-{verdict.gate}".replace("_", "-")
    emit_event(
        event=f"passgate.gate.{verdict.decision.lower()}",
        resource={"prefect.resource.id": f"passgate.gate.{verdict.gate}", "prefect.resource.name": str(verdict.gate)},
        payload={"run_id": verdict.run_id, "agent": verdict.agent, "verdict": _in_words(verdict)},
    )
    async with asyncio.timeout(SECONDS_TO_PUBLISH):
        await acreate_table_artifact(table=_table(verdict), key=key, description=markdown(RunView(verdict)))


def _table(verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "suite": str(suite.suite),
            "tasks": f"{suite.tasks_passed}/{suite.tasks}",
            "trials": f"{suite.trials_passed}/{suite.trials_measured}",
            "errors": suite.trials_error,
            "metric": suite.metric,
            "value": suite.value,
            "interval": [suite.interval.low, suite.interval.high] if suite.interval else None,
            "cost": suite.cost,
        }
        for suite in verdict.measurement.suites
    ]


def _as_run_name(name: str) -> str:
    """A name that Prefect does not take for a template."""
    return name.replace("{", "(").replace("}", ")")
