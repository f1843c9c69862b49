"""The task runs of a flow run that Prefect's server has not heard of: it was down when they were told."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prefect import get_client, task
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, TaskRun

from passgate.flows.flow_runs import current_flow_run

_SECONDS = 5.0
"""So long the server may take to record what it has heard."""
_PAGE = 200
_MOST = 10_000  # Task runs of a flow run that is tried again many times


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """A step whose task run has ended, in this process."""

    name: str
    task_run_id: UUID
    state: State[Any]
    ended: float = field(default_factory=time.monotonic)


async def report_missing(steps: Iterable[ShownStep]) -> None:
    """Tell the server of task runs that it should know by now and does not. Raises whatever Prefect raises."""
    due = [step for step in steps if time.monotonic() - step.ended > _SECONDS]
    if not due:
        return
    async with get_client() as client:
        if await _missing(client, due):
            await asyncio.sleep(_SECONDS)
            known = await _known(client)
            for step in await _missing(client, due):
                if step.task_run_id not in known:
                    await _create(client, step)
                await client.set_task_run_state(step.task_run_id, step.state, force=True)


async def _missing(client: PrefectClient, steps: Iterable[ShownStep]) -> list[ShownStep]:
    ended = {one.id for one in (await _known(client)).values() if one.state is not None and one.state.is_final()}
    return [step for step in steps if step.task_run_id not in ended]


async def _known(client: PrefectClient) -> dict[UUID, TaskRun]:
    of_flow_run = FlowRunFilter(id=FlowRunFilterId(any_=[current_flow_run().id]))
    known: dict[UUID, TaskRun] = {}
    # A task run that the server records meanwhile moves the others: pages overlap, so `known` is no offset.
    for start in range(0, _MOST, _PAGE):
        page = await client.read_task_runs(flow_run_filter=of_flow_run, limit=_PAGE, offset=start)
        known |= {one.id: one for one in page}
        if len(page) < _PAGE:
            break
    return known


async def _create(client: PrefectClient, step: ShownStep) -> None:
    @task(name=step.name)
    async def told() -> None:
        return

    flow_run_id, dynamic_key = current_flow_run().id, str(step.task_run_id)
    await client.create_task_run(told, flow_run_id, dynamic_key, id=step.task_run_id, name=step.name)
