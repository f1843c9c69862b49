"""Prefect as the engine: steps are task runs of a flow run, which shows the verdict by its state, log and artifacts."""

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from prefect import Flow, flow, get_client, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TagsContext, TaskRunContext
from prefect.states import Failed

from passgate.flows.evaluate import evaluate
from passgate.flows.executors import open_executor
from passgate.flows.flow_runs import (
    current_flow_run,
    end_without_retries,
    own_run_id,
    rename_flow_run,
    resolve_environment,
    resume_request,
    seconds_to_report,
    start_retry,
    watch_cancellation,
)
from passgate.flows.process.interrupts import cancel_on_sigterm, ignore_interrupts
from passgate.flows.publishing import emit_verdict, progress_artifact, publish_artifacts
from passgate.flows.states import (
    LONGEST_MESSAGE,
    MAY_CHANGE,
    cancelled_state,
    error_state,
    run_place,
    step_state,
    verdict_lines,
    verdict_state,
)
from passgate.tasks.errors import PassgateError
from passgate.tasks.execution.engine import Engine, StepFault, Work, no_fault
from passgate.tasks.execution.remote import MOST_TASK_RUNS
from passgate.tasks.execution.worker import fault_of_task
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import HISTORY_VARIABLE, Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Verdict

T = TypeVar("T")
Settle = Callable[[Verdict, float], Awaitable[Verdict]]
"""Returns the verdict that stands, after at most so many seconds of waiting for somebody to settle it."""

_DESCRIPTION = "Its state is GatePassed, GateFailed, AwaitingSignOff, GateInconclusive, GateNotRun or GateCrashed."
_MOST_FAILED_TASKS = 100
"""Task runs for eval tasks that have failed and shared theirs with others; a table names all of them."""
_SECONDS_TO_RECORD = 5.0  # How long the server may take to record a task run that it has heard of
_PAGE = 200
_MOST_LISTED = 10_000  # Task runs of a flow run that is tried again many times


def gate_flow(gate: GateName, settle: Settle | None = None) -> Flow[..., Any]:
    """Return the flow of a gate, with a request's fields as parameters. `settle` decides what awaits a sign-off."""

    async def run(**options: Any) -> State[Any]:
        return await _evaluate_in_flow(gate, RunRequest.model_validate(options), settle)

    fields = RunRequest.model_fields
    # Prefect reads the parameters from the signature and their descriptions from the docstring.
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
            for name, field in fields.items()
        ]
    )
    arguments = (f"    {name}: {' '.join((field.description or '').split())}" for name, field in fields.items())
    run.__doc__ = "\n".join([_DESCRIPTION, "", "Args:", *arguments])
    return flow(name=str(gate), description=_DESCRIPTION, flow_run_name=f"{gate!s} {{agent}}")(run)


async def _evaluate_in_flow(gate: GateName, request: RunRequest, settle: Settle | None) -> State[Any]:
    """Return the final state of a flow run. Each attempt resumes one run; none is made that can change nothing."""
    while True:
        state = await _attempt(gate, request, settle)
        if state.name not in MAY_CHANGE:
            await _log_failure(end_without_retries(state), "the end of the flow run")
            return state
        if not await _log_failure(start_retry(state), "the flow run is not tried again"):
            return state


async def _attempt(gate: GateName, request: RunRequest, settle: Settle | None) -> State[Any]:
    engine, run_id = PrefectEngine(), request.run or own_run_id(gate)
    if request.history is None and (history := os.environ.get(HISTORY_VARIABLE)):
        request = request.model_copy(update={"history": history})  # as a command line takes it from its environment
    try:
        with cancel_on_sigterm():
            async with watch_cancellation() as cancellation:
                await resolve_environment()
                begun = resume_request(request, run_id)
                verdict = await evaluate(
                    gate, begun, engine, run_id=run_id, open_executor=partial(open_executor, engine, engine.count_batch)
                )
                settled = verdict if settle is None else await settle(verdict, begun.wait_for_sign_off or 0.0)
    except asyncio.CancelledError:
        current, by_worker = asyncio.current_task(), current_flow_run().deployment_id is not None
        if by_worker:
            # The worker sends another SIGTERM while this says `Cancelled`; Prefect's handler would say `Crashed` then.
            ignore_interrupts()
        remedy = f"resume it with `passgate run {gate} --resume {run_id}`, or with the parameter run={run_id}"
        message = f"the run {run_place(run_id)} was stopped: {remedy}"
        get_run_logger().warning("%s", message)
        if by_worker and not cancellation.is_wanted:
            # A worker ends the process at once when somebody cancels the flow run.
            await asyncio.create_task(cancellation.look())
        # What a worker of Prefect has ended otherwise, the worker reports itself.
        if (by_worker and not cancellation.is_wanted) or current is None or RunStore.of(run_id).has_verdict():
            raise
        current.uncancel()
        return cancelled_state(gate, run_id, message, in_prefect=cancellation.is_wanted)
    except Exception as error:  # noqa: BLE001 - the caller gets the exception with the state
        return error_state(error)
    if settled != verdict:
        await engine.publish(settled)
    return verdict_state(settled)


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """A step whose task run has ended, in this process."""

    name: str
    task_run_id: UUID
    state: State[Any]
    ended: float = field(default_factory=time.monotonic)


class PrefectEngine(Engine):
    """Steps as Prefect tasks, inside of a flow run. What goes wrong with Prefect is logged, and changes nothing."""

    def __init__(self) -> None:
        self._shown: dict[str, ShownStep] = {}
        self._batches = 0
        self._masker = Masker([])

    async def step(
        self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], StepFault | None] = no_fault
    ) -> T:
        """Do a step as a task run. Its result never passes through Prefect, which stores and caches nothing."""
        results: list[asyncio.Future[T]] = []
        shown_name = run_name or name

        async def run() -> State[Any]:
            results.append(asyncio.ensure_future(work()))
            try:
                state = step_state(fault(await results[0]), self._masker)
            except PassgateError as error:
                # Prefect prints the traceback of what is raised, and this is a message for a user.
                state = Failed(message=str(error)[:LONGEST_MESSAGE])
            context = TaskRunContext.get()
            if context is not None:
                self._shown[shown_name] = ShownStep(name=shown_name, task_run_id=context.task_run.id, state=state)
            return state

        # Prefect takes braces for a template.
        template = shown_name.replace("{", "(").replace("}", ")")
        as_task = task(name=name, task_run_name=template, cache_policy=NO_CACHE)(run)
        # A task run with a tag asks the server for a slot of concurrency before it begins.
        with TagsContext(current_tags=set()):
            showing: Awaitable[Any] = as_task(return_state=True)  # type: ignore[assignment]
            await _log_failure(showing, f"the task run {name!r} is not shown")
        return await (results[0] if results else work())

    def count_batch(self) -> None:
        """Count a batch that a task runner has taken as a task run."""
        self._batches += 1

    @asynccontextmanager
    async def progress(self, plan: Plan) -> AsyncIterator[None]:
        """Log which run this is and where it is kept, and show its progress while the context lasts."""
        self._masker = run_masker(plan)
        get_run_logger().info("run %s", run_place(plan.run_id))
        await _log_failure(rename_flow_run(plan), "the flow run keeps its name")
        async with progress_artifact(plan):
            yield

    async def publish(self, verdict: Verdict) -> None:
        """Publish the verdict in the log, as artifacts and as an event, and failed tasks as failed task runs."""
        log = get_run_logger()
        for line in verdict_lines(verdict):
            log.info("%s", self._masker.text(line))
        await _log_failure(self._publish(verdict), "the verdict is not shown as an artifact")

    async def _publish(self, verdict: Verdict) -> None:
        try:
            async with asyncio.timeout(seconds_to_report()):
                await publish_artifacts(verdict, self._masker)
        finally:
            # A client that has lost its server sends what it still holds with its next event.
            emit_verdict(verdict, self._masker)
        async with asyncio.timeout(seconds_to_report()):
            await report_missing(self._shown.values())
            # A failed task run for each failed eval task without one.
            tasks = (one for one in verdict.measurement.tasks if one.name not in self._shown)
            faults = [(one.name, fault) for one in tasks if (fault := fault_of_task(one)) is not None]
            room = MOST_TASK_RUNS - len(self._shown) - self._batches
            for name, fault in faults[: max(0, min(room, _MOST_FAILED_TASKS))]:
                await self.step("task", _do_nothing, name, lambda _, fault=fault: fault)  # type: ignore[misc]


async def _log_failure(showing: Awaitable[T], message: str) -> T | None:
    """Wait for a call of Prefect and return its result. Log an error of it."""
    try:
        return await showing
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
        get_run_logger().warning("%s: %s", message, error)
        return None


async def report_missing(steps: Iterable[ShownStep]) -> None:
    """Report task runs that the server does not know because it was down when they ended. Raises Prefect's errors."""
    due = [step for step in steps if time.monotonic() - step.ended > _SECONDS_TO_RECORD]
    if not due:
        return
    async with get_client() as client:
        known = await _known_task_runs(client)
        if all(_is_final(known.get(step.task_run_id)) for step in due):
            return
        await asyncio.sleep(_SECONDS_TO_RECORD)
        known = await _known_task_runs(client)
        for step in due:
            if step.task_run_id not in known:
                shadow = task(name=step.name)(_do_nothing)
                flow_run_id, key = current_flow_run().id, str(step.task_run_id)
                await client.create_task_run(shadow, flow_run_id, key, id=step.task_run_id, name=step.name)
            if not _is_final(known.get(step.task_run_id)):
                await client.set_task_run_state(step.task_run_id, step.state, force=True)


async def _do_nothing() -> None:
    return


def _is_final(task_run: TaskRun | None) -> bool:
    return task_run is not None and task_run.state is not None and task_run.state.is_final()


async def _known_task_runs(client: PrefectClient) -> dict[UUID, TaskRun]:
    own = FlowRunFilter(id=FlowRunFilterId(any_=[current_flow_run().id]))
    known: dict[UUID, TaskRun] = {}
    # A task run that the server records meanwhile moves the others: pages overlap, so `known` is no offset.
    for start in range(0, _MOST_LISTED, _PAGE):
        page = await client.read_task_runs(flow_run_filter=own, limit=_PAGE, offset=start)
        known |= {one.id: one for one in page}
        if len(page) < _PAGE:
            break
    return known
