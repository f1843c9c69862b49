"""Prefect as the engine: steps are task runs of a flow run, which shows the verdict by its state, log and artifacts."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import TagsContext, TaskRunContext
from prefect.states import Failed

from passgate.flows.display.artifacts import publish_artifacts
from passgate.flows.display.events import emit_verdict
from passgate.flows.display.progress import progress_artifact
from passgate.flows.display.report_retries import seconds_to_report
from passgate.flows.display.states import (
    LONGEST_MESSAGE,
    MAY_CHANGE,
    cancelled_state,
    error_state,
    how_to_resume,
    run_place,
    step_state,
    verdict_lines,
    verdict_state,
)
from passgate.flows.display.task_runs import ShownStep, report_missing
from passgate.flows.evaluate import evaluate
from passgate.flows.executors import open_executor
from passgate.flows.flow_runs import (
    current_flow_run,
    end_without_retries,
    own_run_id,
    rename_flow_run,
    resume_request,
    start_retry,
    watch_cancellation,
)
from passgate.flows.prefect_environment import resolve_environment
from passgate.flows.process.interrupts import cancelled_by_sigterm, ignore_interrupts
from passgate.tasks.errors import PassgateError
from passgate.tasks.execution.engine import Engine, StepFault, Work, no_fault
from passgate.tasks.execution.remote import MOST_TASK_RUNS
from passgate.tasks.execution.worker import fault_of_task
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import HISTORY_VARIABLE, Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Verdict

T = TypeVar("T")
Settle = Callable[[Verdict, float], Awaitable[Verdict]]
"""Gives the verdict that stands, after at most so many seconds of waiting for somebody to settle it."""

_MOST_FAILED_TASKS = 100
"""Task runs for eval tasks that have failed and shared theirs with others; a table names all of them."""


class PrefectEngine(Engine):
    """Steps as Prefect tasks, inside of a flow run. What goes wrong with Prefect is logged, and changes nothing."""

    def __init__(self) -> None:
        self._shown: dict[str, ShownStep] = {}
        self._handed_out = 0
        self._masker = Masker([])

    async def step(
        self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], StepFault | None] = no_fault
    ) -> T:
        """Do a step as a task run. Its result never passes through Prefect, which stores and caches nothing."""
        results: list[asyncio.Future[T]] = []

        async def shown() -> State[Any]:
            results.append(asyncio.ensure_future(work()))
            try:
                state = step_state(fault(await results[0]), self._masker)
            except PassgateError as error:
                # Prefect prints the traceback of what is raised, and this is a message for a user.
                state = Failed(message=str(error)[:LONGEST_MESSAGE])
            context = TaskRunContext.get()
            if context is not None:
                shown_name = run_name or name
                self._shown[shown_name] = ShownStep(name=shown_name, task_run_id=context.task_run.id, state=state)
            return state

        as_task = task(name=name, task_run_name=_as_run_name(run_name or name), cache_policy=NO_CACHE)(shown)
        # A task run with a tag asks the server for a slot of concurrency before it begins.
        with TagsContext(current_tags=set()):
            shown_as: Awaitable[Any] = as_task(return_state=True)  # type: ignore[assignment]
            await _unharmed(shown_as, f"the task run {name!r} is not shown")
        return await (results[0] if results else work())

    def handed_out(self) -> None:
        """Count a batch that a task runner has taken as a task run."""
        self._handed_out += 1

    @asynccontextmanager
    async def progress(self, plan: Plan) -> AsyncIterator[None]:
        """Say which run this is and where it is kept, and show how far it has come."""
        self._masker = run_masker(plan)
        get_run_logger().info("run %s", run_place(plan.run_id))
        await _unharmed(rename_flow_run(plan), "the flow run keeps its name")
        async with progress_artifact(plan):
            yield

    async def publish(self, verdict: Verdict) -> None:
        """Publish the verdict in the log, as artifacts and as an event, and failed tasks as failed task runs."""
        log = get_run_logger()
        for line in verdict_lines(verdict):
            log.info("%s", self._masker.text(line))
        await _unharmed(self._published(verdict), "the verdict is not shown as an artifact")

    async def _published(self, verdict: Verdict) -> None:
        try:
            async with asyncio.timeout(seconds_to_report()):
                await publish_artifacts(verdict, self._masker)
        finally:
            # A client that has lost its server sends what it still holds with its next event.
            emit_verdict(verdict, self._masker)
        async with asyncio.timeout(seconds_to_report()):
            await report_missing(self._shown.values())
            await self._show_failed_tasks(verdict.measurement.tasks)

    async def _show_failed_tasks(self, tasks: tuple[TaskMeasurement, ...]) -> None:
        """Create a failed task run for each failed eval task without one."""
        faults = {one.name: fault_of_task(one) for one in tasks if one.name not in self._shown}
        failed = [(name, fault) for name, fault in faults.items() if fault is not None]
        room = MOST_TASK_RUNS - len(self._shown) - self._handed_out
        for name, fault in failed[: max(0, min(room, _MOST_FAILED_TASKS))]:
            await self.step("task", _nothing, name, lambda _, fault=fault: fault)  # type: ignore[misc]


async def _nothing() -> None:
    return


async def _unharmed(showing: Awaitable[object], without: str) -> None:
    try:
        await showing
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
        get_run_logger().warning("%s: %s", without, error)


async def evaluate_in_flow(gate: GateName, request: RunRequest, settle: Settle | None = None) -> State[Any]:
    """Run a gate inside of a flow run; gives the state that the flow run ends in, by the verdict or by what `settle`
    makes of it.

    Every attempt at the flow run continues the same run. Where another attempt can change nothing there is none.
    """
    while True:
        state = await _attempt(gate, request, settle)
        if state.name not in MAY_CHANGE:
            await _unharmed(end_without_retries(state), "the end of the flow run")
            return state
        if not await _is_tried_again(state):
            return state


async def _is_tried_again(state: State[Any]) -> bool:
    try:
        return await start_retry(state)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
        get_run_logger().warning("the flow run is not tried again: %s", error)
        return False


async def _attempt(gate: GateName, request: RunRequest, settle: Settle | None) -> State[Any]:
    engine, run_id = PrefectEngine(), request.run or own_run_id(gate)
    try:
        with cancelled_by_sigterm():
            async with watch_cancellation() as cancellation:
                await resolve_environment()
                begun = resume_request(_with_environment(request), run_id)
                verdict = await evaluate(
                    gate, begun, engine, run_id=run_id, open_executor=partial(open_executor, engine, engine.handed_out)
                )
                settled = verdict if settle is None else await settle(verdict, begun.wait_for_sign_off or 0.0)
    except asyncio.CancelledError:
        current, by_worker = asyncio.current_task(), current_flow_run().deployment_id is not None
        if by_worker:
            # The worker sends another SIGTERM while this says `Cancelled`; Prefect's handler would say `Crashed` then.
            ignore_interrupts()
        way_on = f"the run {run_place(run_id)} was stopped: {how_to_resume(gate, run_id)}"
        get_run_logger().warning("%s", way_on)
        if by_worker and not cancellation.is_wanted:
            # A worker ends the process at once when somebody cancels the flow run.
            await asyncio.create_task(cancellation.look())
        # What a worker of Prefect has ended otherwise is the worker's to tell.
        if (by_worker and not cancellation.is_wanted) or current is None or RunStore.of(run_id).has_verdict():
            raise
        current.uncancel()
        return cancelled_state(gate, run_id, way_on, in_prefect=cancellation.is_wanted)
    except Exception as error:  # noqa: BLE001 - the caller gets the exception with the state
        return error_state(error)
    if settled != verdict:
        await engine.publish(settled)
    return verdict_state(settled)


def _with_environment(request: RunRequest) -> RunRequest:
    """Return the request of a flow run with the values that a command line takes from its environment."""
    history = os.environ.get(HISTORY_VARIABLE)
    return request.model_copy(update={"history": history}) if history and request.history is None else request


def _as_run_name(name: str) -> str:
    """Return a name that Prefect does not take for a template."""
    return name.replace("{", "(").replace("}", ")")
