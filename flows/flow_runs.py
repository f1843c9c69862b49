"""Connect a Prefect flow run with the run of a gate: its id, its environment, its attempts, its cancellation."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import UUID

from prefect import get_client
from prefect.blocks.system import Secret
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import FlowRunContext
from prefect.states import Running
from prefect.utilities.engine import propose_state
from prefect.variables import Variable

from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.plan import new_run_id

_SECONDS_VARIABLE: Final = "PASSGATE_PREFECT_SECONDS"
_SECONDS_TO_REPORT = 60.0
_SECONDS = 3.0  # Between two looks at whether somebody has cancelled the flow run
_SECONDS_TO_LOOK = 10.0  # A worker kills the process after thirty
_SECONDS_TO_NAME = 5.0
_CANCELLED = frozenset({StateType.CANCELLING, StateType.CANCELLED})


def current_flow_run() -> FlowRun:
    """Return the current flow run. Raise `RuntimeError` outside of one."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("this is not a flow run")
    return context.flow_run


def seconds_to_report() -> float:
    """Return how many seconds Prefect may take to accept a verdict. Raise `UsageError`."""
    given = os.environ.get(_SECONDS_VARIABLE)
    try:
        return max(0.0, float(given)) if given else _SECONDS_TO_REPORT
    except ValueError as error:
        raise UsageError(f"{_SECONDS_VARIABLE} is not a number: {given}") from error


def own_run_id(gate: GateName) -> str:
    """Return the id of the run of this flow run, from its first start: the same for every attempt and process."""
    flow_run = current_flow_run()
    if flow_run.start_time is None:
        raise RuntimeError("the flow run has not begun")
    return new_run_id(gate, flow_run.start_time, flow_run.id.hex[-8:])


def resume_request(request: RunRequest, run_id: str) -> RunRequest:
    """Return a request that resumes what an earlier attempt has begun. Raise `StorageError` while it goes on."""
    if request.run is not None:
        return request
    store = RunStore.new(run_id, request.run_store)
    if not store.has_plan():
        return request
    store.begin()
    return request.model_copy(update={"run": store.location if store.url is not None else run_id})


async def rename_flow_run(plan: Plan) -> None:
    """Name the flow run after the agent of its plan, which the request of a resumed run lacks."""
    flow_run, name = current_flow_run(), f"{plan.gate} {plan.request.agent}"
    if flow_run.name != name:
        async with asyncio.timeout(_SECONDS_TO_NAME), get_client() as client:
            await client.update_flow_run(flow_run.id, name=name)


async def resolve_environment() -> None:
    """Replace each environment variable of the form `prefect-secret:NAME` or `prefect-variable:NAME` by the value of
    that Secret block or variable, so that deployments and logs contain only names.

    Raise `UsageError` if it does not exist, and Prefect's own errors.
    """
    for name, value in list(os.environ.items()):
        kind, _, stored = value.partition(":")
        if kind == "prefect-secret":
            try:
                secret: Any = await Secret.aload(stored)
            except ValueError as error:
                raise UsageError(f"Prefect has no Secret block {stored!r}, which {name} names") from error
            os.environ[name] = str(secret.get())
        elif kind == "prefect-variable":
            variable = await Variable.aget(stored)
            if variable is None:
                raise UsageError(f"Prefect has no variable {stored!r}, which {name} names")
            os.environ[name] = str(variable)


async def start_retry(state: State[Any]) -> bool:
    """Propose a final state, and start another attempt if the flow run has `retries` left. Return whether it did.

    Prefect itself retries a flow only for exceptions, and leaves a failed state in AwaitingRetry for ever.
    """
    if not current_flow_run().empirical_policy.retries:
        return False
    flow_run_id = current_flow_run().id
    async with get_client() as client:
        answer = await propose_state(client, _copy(state), flow_run_id=flow_run_id)
        if not answer.is_scheduled():
            return False
        await propose_state(client, Running(), flow_run_id=flow_run_id)
    return True


async def end_without_retries(state: State[Any]) -> None:
    """Set a failed state that another attempt would not change, although the flow run has `retries` left."""
    if state.is_failed() and current_flow_run().empirical_policy.retries:
        async with get_client() as client:
            await propose_state(client, _copy(state), flow_run_id=current_flow_run().id, force=True)


def _copy(state: State[Any]) -> State[Any]:
    """Copy a state, because Prefect marks what it receives and misreads a marked state that a flow returns."""
    return State(type=state.type, name=state.name, message=state.message)


class Cancellation:
    """Whether a flow run was cancelled in Prefect."""

    def __init__(self, flow_run_id: UUID) -> None:
        self._flow_run_id = flow_run_id
        self.is_wanted = False

    async def look(self) -> None:
        """Ask the server once, for at most ten seconds. Change nothing if the server is in trouble."""
        with suppress(Exception):
            async with asyncio.timeout(_SECONDS_TO_LOOK), get_client() as client:
                state = (await client.read_flow_run(self._flow_run_id)).state_type
            self.is_wanted = state in _CANCELLED


@asynccontextmanager
async def watch_cancellation() -> AsyncIterator[Cancellation]:
    """Cancel the current task when the flow run is cancelled: no worker kills a process that a command started."""
    current, cancellation = asyncio.current_task(), Cancellation(current_flow_run().id)

    async def watch() -> None:
        while not cancellation.is_wanted:
            await asyncio.sleep(_SECONDS)
            await cancellation.look()
        if current is not None:
            current.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield cancellation
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
