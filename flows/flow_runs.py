"""A flow run of Prefect and the run of a gate that belongs to it: its attempts, and what cancels it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import FlowRunContext
from prefect.states import Running
from prefect.utilities.engine import propose_state

from passgate.tasks.errors import EngineError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.plan import new_run_id

_SECONDS = 3.0  # Between two looks at whether somebody has cancelled the flow run
_SECONDS_TO_LOOK = 10.0  # A worker kills the process after thirty
_SECONDS_TO_NAME = 5.0
_ALSO_OF_CONTINUED = frozenset({"wait_for_sign_off"})
_OF_DEPLOYMENT = frozenset(RunRequest.model_fields) - {"run"}
_CANCELLED = frozenset({StateType.CANCELLING, StateType.CANCELLED})


def current_flow_run() -> FlowRun:
    """The flow run that this is in. Raises `RuntimeError` outside of one."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("this is no flow run")
    return context.flow_run


def own_run_id(gate: GateName) -> str:
    """The id of the run that belongs to the current flow run, whichever attempt at it and whichever process this is.

    Prefect makes the flow runs of a schedule days before they begin: the time in the id is that of the first start.
    """
    flow_run = current_flow_run()
    if flow_run.start_time is None:
        raise RuntimeError("the flow run has not begun")
    return new_run_id(gate, flow_run.start_time, flow_run.id.hex[-8:])


async def with_deployment(request: RunRequest) -> RunRequest:
    """The request of a flow run with its deployment's values of the keys that the flow run does not give.

    Prefect puts the `request` of a flow run in the place of the deployment's as a whole: one that gives the number of
    jobs alone would try the reference solutions in place of the deployment's agent. A run that is carried on has values
    of its own. Raises `EngineError` where the server does not say what the deployment has.
    """
    flow_run = current_flow_run()
    given = flow_run.parameters.get("request")
    if flow_run.deployment_id is None or not isinstance(given, dict):
        return request
    try:
        async with asyncio.timeout(_SECONDS_TO_LOOK), get_client() as client:
            deployed = (await client.read_deployment(flow_run.deployment_id)).parameters.get("request")
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise EngineError(f"the Prefect server does not say what the deployment has as its request: {why}") from error
    wanted = _OF_DEPLOYMENT if request.run is None else _ALSO_OF_CONTINUED
    also = {key: value for key, value in (deployed or {}).items() if key in wanted}
    return RunRequest.model_validate({**also, **given})


def continued(request: RunRequest, run_id: str) -> RunRequest:
    """The request of a flow run's attempt: an earlier attempt has begun the run, or there is none and it is a new one.

    Raises `StorageError` while another process has the run.
    """
    if request.run is not None:
        return request
    store = RunStore.new(run_id, request.run_store)
    if not store.has_plan():
        return request
    store.begin()
    return request.model_copy(update={"run": store.location if store.is_elsewhere else run_id})


async def name_after(plan: Plan) -> None:
    """Name the flow run after the agent of its plan, which the request of a resumed run does not have."""
    flow_run, name = current_flow_run(), f"{plan.gate} {plan.request.agent}"
    if flow_run.name != name:
        async with asyncio.timeout(_SECONDS_TO_NAME), get_client() as client:
            await client.update_flow_run(flow_run.id, name=name)


async def tried_again(state: State[Any]) -> bool:
    """Whether the flow run has another attempt after this state: its `retries` and their delay are Prefect's to keep.

    It is running again then. Prefect's own loop does so for exceptions only: of a flow that returns a failed state it
    leaves the run in AwaitingRetry for ever.
    """
    if not _retries():
        return False
    flow_run_id = current_flow_run().id
    async with get_client() as client:
        answer = await propose_state(client, _proposal(state), flow_run_id=flow_run_id)
        if not answer.is_scheduled():
            return False
        await propose_state(client, Running(), flow_run_id=flow_run_id)
    return True


async def end_without_retries(state: State[Any]) -> None:
    """Set a failed state that another attempt would not change, past the flow run's `retries`."""
    if state.is_failed() and _retries():
        async with get_client() as client:
            await propose_state(client, _proposal(state), flow_run_id=current_flow_run().id, force=True)


def _proposal(state: State[Any]) -> State[Any]:
    """The state anew: Prefect marks what it is sent, and takes a marked one that a flow returns for another run's."""
    return State(type=state.type, name=state.name, message=state.message)


def _retries() -> int:
    return current_flow_run().empirical_policy.retries or 0


class Cancellation:
    """Whether somebody has cancelled a flow run in Prefect."""

    def __init__(self, flow_run_id: UUID) -> None:
        self._flow_run_id = flow_run_id
        self.is_wanted = False

    async def look(self) -> None:
        """Ask the server once, for at most ten seconds. A server in trouble leaves things as they were."""
        with suppress(Exception):
            async with asyncio.timeout(_SECONDS_TO_LOOK), get_client() as client:
                state = (await client.read_flow_run(self._flow_run_id)).state_type
            self.is_wanted = state in _CANCELLED


@asynccontextmanager
async def cancelled_by_prefect() -> AsyncIterator[Cancellation]:
    """While the context lasts, cancel the current asyncio task once somebody cancels the flow run.

    A worker ends the process of such a flow run; nobody does that to one that was started by a command.
    """
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
