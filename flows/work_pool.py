"""Batches as flow runs of a deployment on a work pool of Prefect: any worker of the pool, on any machine, runs them."""

import asyncio
import difflib
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import yaml

from passgate.flows.concurrency_limit import refuse_missing_limit
from passgate.flows.repository_name import repository_name
from passgate.tasks.errors import StorageError, UsageError, WorkerLostError
from passgate.tasks.execution.coordinator import Executor
from passgate.tasks.execution.distributed.batch import part_of
from passgate.tasks.execution.distributed.executor import distributed_executor
from passgate.tasks.execution.distributed.stored_batches import has_outcome, read_outcome, write_batch
from passgate.tasks.execution.in_process import cost_left
from passgate.tasks.execution.worker import trials_at_once
from passgate.tasks.history.lease import LeaseHolder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Batch, BatchOutcome, Plan, RunRequest
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

FLOW: Final = "passgate-batch"
ENTRYPOINT: Final = "passgate.flows.batch.batch"
WORKERS: Final = 16  # Batches at once on a pool without a limit of its own
_NAMED_POOLS: Final = 5
_LONGEST_MESSAGE: Final = 500  # Characters of what Prefect says of a flow run
_POLL_SECONDS: Final = 2.0
_SECONDS_TO_TELL: Final = 10.0  # How long batches wait for a worker before passgate says why
_SECONDS_TO_HOLD: Final = 120.0  # How long a flow run that runs may go without renewing the lease of its batch
_SECONDS_TO_RENEW: Final = 20.0  # Between two looks at a lease
_SECONDS_TO_CANCEL: Final = 5.0
_SECONDS_OF_OUTAGE: Final = 300.0


def refuse_work_pool(request: RunRequest) -> None:
    """Raise `UsageError` for a work pool whose workers could not reach the run."""
    if request.work_pool is not None and request.run_store is None and request.run is None:
        raise UsageError("--work-pool needs --run-store: its workers reach the run at a URL, as in s3://bucket/runs")


async def refuse_missing_pool(request: RunRequest) -> None:
    """Raise `UsageError` for a work pool that the Prefect server does not have.

    Raises what Prefect raises where its server cannot tell.
    """
    if request.work_pool is not None:
        from prefect import get_client

        async with get_client() as client:
            await _pool(client, request.work_pool)


@asynccontextmanager
async def on_work_pool(plan: Plan, store: RunStore, finished: Sequence[FinishedTrial]) -> AsyncIterator[Executor]:
    """An executor that has each batch run as a flow run on the work pool of the plan's request.

    Raises `UsageError` where there is no such pool, or no server that has pools.
    """
    from prefect import get_client

    name = str(plan.request.work_pool)
    if not store.is_elsewhere:
        raise UsageError("--work-pool needs a run that is kept at a URL: start it with --run-store")
    await refuse_missing_limit(plan)
    async with get_client() as client:
        pool = await _pool(client, name)
        flow_runs = _FlowRuns(client, store, plan.run_id, name, await _deployment(client, name, _project()))
        await flow_runs.cancel_left_over()
        watching = asyncio.create_task(flow_runs.watch())
        try:
            async with distributed_executor(
                flow_runs.run,
                store,
                workers=plan.request.workers or pool.concurrency_limit or WORKERS,
                trials_at_once=trials_at_once(plan),
                cost_left=cost_left(plan, finished),
                finished=finished,
            ) as execute:
                yield execute
        finally:
            watching.cancel()
            with suppress(Exception):
                await asyncio.wait_for(flow_runs.cancel_left_over(), _SECONDS_TO_CANCEL)


async def _pool(client: "PrefectClient", name: str) -> Any:
    from prefect.exceptions import ObjectNotFound

    try:
        return await client.read_work_pool(name)
    except ObjectNotFound as error:
        known = [pool.name for pool in await client.read_work_pools()]
        most_alike = difflib.get_close_matches(name, known, n=_NAMED_POOLS, cutoff=0.0)
        there = ", ".join(most_alike) + (", and others" if len(known) > len(most_alike) else "") or "none"
        remedy = f"make it with `prefect work-pool create {name}`, or correct --work-pool"
        listed = f"it has {there} (`prefect work-pool ls`)"
        raise UsageError(f"the Prefect server has no work pool {name!r}; {listed}: {remedy}") from error


def _project() -> str:
    """What prefect.yaml calls the repository, or the name that `init --prefect` would give it there."""
    try:
        name = yaml.safe_load(Path("prefect.yaml").read_text(encoding="utf-8"))["name"]
    except (OSError, yaml.YAMLError, UnicodeDecodeError, LookupError, TypeError):
        name = None
    return name if isinstance(name, str) and name else repository_name(Path.cwd()).text


async def _deployment(client: "PrefectClient", pool: str, project: str) -> UUID:
    """The deployment of batches on a pool, made where there is none. What somebody has set for it stays.

    If the project's deployment is on another pool, a run there may still need it. Then this pool gets a deployment with
    the pool in its name.
    """
    of_project, name = await _known(client, f"{project}-batch"), f"{project}-{pool}-batch"
    for one in (of_project, await _known(client, name)):
        if one is not None and one.work_pool_name == pool:
            return one.id
    is_free = of_project is None or of_project.work_pool_name is None
    return await client.create_deployment(
        await client.create_flow_from_name(FLOW),
        f"{project}-batch" if is_free else name,
        entrypoint=ENTRYPOINT,
        work_pool_name=pool,
        pull_steps=[],
        job_variables=of_project.job_variables if of_project is not None else None,
        tags=["passgate"],
    )


async def _known(client: "PrefectClient", name: str) -> "DeploymentResponse | None":
    from prefect.exceptions import ObjectNotFound

    try:
        return await client.read_deployment_by_name(f"{FLOW}/{name}")
    except ObjectNotFound:
        return None


@dataclass
class _Batch:
    """A batch that is handed out as a flow run."""

    digest: str
    part: str
    ended: asyncio.Future[None]
    asked: float = field(default_factory=time.monotonic)
    holder: LeaseHolder | None = None
    renewed: float | None = None
    """When the lease of the batch was first seen as it is now, or the flow run was first seen to run."""
    next_look: float = 0.0
    state: str = ""
    """The final state of the flow run, for a message."""


class _FlowRuns:
    """The flow runs of batches: one look at all of them every two seconds."""

    def __init__(self, client: "PrefectClient", store: RunStore, run_id: str, pool: str, deployment: UUID) -> None:
        self._client, self._store, self._pool, self._deployment = client, store, pool, deployment
        self._tag = f"passgate-run={run_id}"
        self._plan_digest = store.plan_digest()
        self._batches: dict[UUID, _Batch] = {}
        self._making: set[asyncio.Task[FlowRun]] = set()
        self._told = ""

    async def run(self, batch: Batch) -> BatchOutcome:
        """Have a batch run by a worker. Raises what it raises, and `WorkerLostError`."""
        batch = batch.model_copy(update={"plan_digest": self._plan_digest})
        digest = await asyncio.to_thread(write_batch, self._store, batch)
        parameters = {"store": self._store.location, "digest": digest, "name": batch.name}
        making = asyncio.create_task(self._made(parameters))
        self._making.add(making)
        making.add_done_callback(self._making.discard)
        flow_run = await asyncio.shield(making)
        one = _Batch(digest, part_of(batch), asyncio.get_running_loop().create_future())
        self._batches[flow_run.id] = one
        try:
            await one.ended
        finally:
            del self._batches[flow_run.id]
        outcome = await asyncio.to_thread(read_outcome, self._store, digest)
        if outcome is None:
            raise WorkerLostError(f"its flow run {flow_run.name} has ended without an outcome{one.state}")
        return outcome

    async def _made(self, parameters: dict[str, Any]) -> "FlowRun":
        """A new flow run. A server in trouble is asked again for a while; then raises `WorkerLostError`."""
        deadline = time.monotonic() + _SECONDS_OF_OUTAGE
        key = secrets.token_hex(8)  # Of a request that was answered too late there is no second flow run
        while True:
            try:
                return await self._client.create_flow_run_from_deployment(
                    self._deployment, parameters=parameters, tags=["passgate", self._tag], idempotency_key=key
                )
            except Exception as error:
                if time.monotonic() > deadline:
                    raise WorkerLostError(f"Prefect takes no flow run: {type(error).__name__}: {error}") from error
            await asyncio.sleep(_POLL_SECONDS)

    async def watch(self) -> None:
        """Notice what has ended, what was lost and what waits for a worker, until it is cancelled."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if self._batches:
                try:
                    await self._look()
                except Exception:  # noqa: BLE001 - a server in trouble is asked again, and the store knows the rest
                    await self._look_into_store()

    async def _look(self) -> None:
        found = await self._read(list(self._batches))
        waiting = False
        for flow_run in found:
            one = self._batches.get(flow_run.id)
            if one is None or one.ended.done() or flow_run.state is None:
                continue
            if flow_run.state.is_final():
                one.state = f" as {flow_run.state.name}: {(flow_run.state.message or '')[:_LONGEST_MESSAGE]}"
                one.ended.set_result(None)
            elif flow_run.state.is_running():
                await self._look_at_running(flow_run.id, one)
            else:
                waiting = waiting or time.monotonic() - one.asked > _SECONDS_TO_TELL
        if waiting:
            await self._tell_why()

    async def _look_into_store(self) -> None:
        for one in list(self._batches.values()):
            with suppress(StorageError):
                if not one.ended.done() and await asyncio.to_thread(has_outcome, self._store, one.digest):
                    one.ended.set_result(None)

    async def _look_at_running(self, flow_run: UUID, one: _Batch) -> None:
        """A flow run whose machine is gone runs for ever in Prefect, but renews the lease of its batch no longer.

        The clock of its machine may be wrong, so whether the lease has expired is not asked.
        """
        now = time.monotonic()
        if now < one.next_look:
            return
        one.next_look = now + _SECONDS_TO_RENEW
        holder = await asyncio.to_thread(self._store.holder_of_part, one.part)
        if one.renewed is None or holder != one.holder:
            one.holder, one.renewed = holder, now
        elif now - one.renewed >= _SECONDS_TO_HOLD:
            await self._cancel(flow_run)
            if not one.ended.done():
                one.ended.set_result(None)

    async def _tell_why(self) -> None:
        pool = await self._client.read_work_pool(self._pool)
        why = ""
        if pool.is_paused:
            remedy = f"prefect work-pool resume {self._pool}"
            why = f"the work pool {self._pool} is paused; the run goes on after `{remedy}`"
        elif pool.status is not None and pool.status.value == "NOT_READY":
            remedy = f"prefect worker start --pool {self._pool}"
            why = f"the work pool {self._pool} has no worker; the run waits for `{remedy}`"
        if why and why != self._told:
            warn(why)
        self._told = why

    async def cancel_left_over(self) -> None:
        """Cancel the flow runs of the run that have not ended, also those of a coordinator that was killed."""
        from prefect.client.schemas.filters import (
            FlowRunFilter,
            FlowRunFilterState,
            FlowRunFilterStateType,
            FlowRunFilterTags,
        )
        from prefect.client.schemas.objects import TERMINAL_STATES

        if self._making:
            # The server makes a flow run also when nobody waits for its answer any more.
            _, late = await asyncio.wait(self._making, timeout=_SECONDS_TO_CANCEL / 2)
            for one in late:
                one.cancel()
        left = FlowRunFilter(
            tags=FlowRunFilterTags(all_=[self._tag]),
            state=FlowRunFilterState(type=FlowRunFilterStateType(not_any_=list(TERMINAL_STATES))),
        )
        found = await self._client.read_flow_runs(flow_run_filter=left, limit=200)
        await asyncio.gather(*(self._cancel(one.id) for one in found))

    async def _cancel(self, flow_run: UUID) -> None:
        """Have the worker end a flow run, or never begin it."""
        from prefect.states import Cancelled, Cancelling

        state = (await self._client.read_flow_run(flow_run)).state
        if state is not None and not state.is_final():
            is_begun = state.is_running() or state.is_pending()
            await self._client.set_flow_run_state(
                flow_run, Cancelling() if is_begun else Cancelled(), force=not is_begun
            )

    async def _read(self, ids: Iterable[UUID]) -> "list[FlowRun]":
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        return await self._client.read_flow_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=list(ids))), limit=200
        )
