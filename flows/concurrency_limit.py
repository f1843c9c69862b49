"""Global concurrency limits of Prefect, which trials of several runs share: each holds a slot by a lease."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from passgate.flows.display.report_retries import seconds_to_report
from passgate.flows.slot_pool import LEASE_SECONDS, OUTAGE_SECONDS, SlotPool, SlotUsage
from passgate.tasks.errors import EngineError, UsageError
from passgate.tasks.execution.worker import Slot
from passgate.tasks.model.run import Plan
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

_ASK_SECONDS: Final = 5.0


@asynccontextmanager
async def shared_limit(plan: Plan, trials_at_once: int) -> AsyncIterator[Slot]:
    """Open the slots of the limit that a plan's agent names, for a process that runs so many trials at once.

    Raises `UsageError` where there is no such limit, and `EngineError` where its server does not answer.
    """
    if plan.agent.concurrency_limit is None:
        yield nullcontext
        return
    from prefect import get_client

    async with get_client() as client:
        limit = _GlobalLimit(client, plan.agent.concurrency_limit)
        pool = SlotPool(limit, (await _usage(limit)).size, trials_at_once, warn)
        async with pool.kept(seconds_to_report()):
            yield pool.slot


async def refuse_missing_limit(plan: Plan) -> None:
    """Find out before the first batch whether the limit of a plan's agent is there. Raises as `shared_limit`."""
    if plan.agent.concurrency_limit is not None:
        from prefect import get_client

        async with get_client() as client:
            await _usage(_GlobalLimit(client, plan.agent.concurrency_limit))


async def _usage(limit: "_GlobalLimit") -> SlotUsage:
    """Ask a server in trouble again for a while."""
    deadline = time.monotonic() + OUTAGE_SECONDS
    while True:
        try:
            return await limit.usage()
        except UsageError:
            raise
        except Exception as error:
            if time.monotonic() > deadline:
                raise EngineError(
                    f"Prefect does not say whether there is a concurrency limit {limit.name!r}: {error}"
                ) from error
        await asyncio.sleep(_ASK_SECONDS)


class _GlobalLimit:
    """A `SlotLimit` at the server of a client."""

    def __init__(self, client: "PrefectClient", name: str) -> None:
        self._client, self.name = client, name

    async def usage(self) -> SlotUsage:
        from prefect.exceptions import ObjectNotFound

        if self._client.server_type.value == "ephemeral":
            raise UsageError(
                f"the concurrency limit {self.name!r} needs a Prefect server that runs share: set PREFECT_API_URL"
            )
        try:
            found = await self._client.read_global_concurrency_limit_by_name(self.name)
        except ObjectNotFound as error:
            raise self._missing() from error
        if found.slot_decay_per_second:
            raise UsageError(
                f"the concurrency limit {self.name!r} is a rate limit, whose slots come back by themselves: "
                f"`prefect gcl update {self.name} --slot-decay-per-second 0`, or name another one in agents.yaml"
            )
        return SlotUsage(found.limit, found.active_slots)

    async def take(self, slots: int) -> UUID | None:
        from httpx import HTTPStatusError

        try:
            response = await self._client.increment_concurrency_slots_with_lease(
                names=[self.name], slots=slots, mode="concurrency", lease_duration=LEASE_SECONDS
            )
        except HTTPStatusError as error:
            # It is full, or has fewer slots in all.
            if error.response.status_code in {HTTPStatus.LOCKED, HTTPStatus.UNPROCESSABLE_ENTITY}:
                return None
            raise
        answer: dict[str, Any] = response.json()
        if not answer["limits"]:
            raise self._missing()
        return UUID(answer["lease_id"])

    async def renew(self, lease: UUID) -> bool:
        from httpx import HTTPStatusError

        try:
            await self._client.renew_concurrency_lease(lease_id=lease, lease_duration=LEASE_SECONDS)
        except HTTPStatusError as error:
            if error.response.status_code == HTTPStatus.GONE:
                return False
            raise
        return True

    async def release(self, lease: UUID) -> None:
        await self._client.release_concurrency_slots_with_lease(lease_id=lease)

    async def release_unleased(self, slots: int) -> None:
        await self._client.release_concurrency_slots(names=[self.name], slots=slots, occupancy_seconds=1.0)

    def _missing(self) -> UsageError:
        return UsageError(
            f"the Prefect server has no concurrency limit {self.name!r}: make it with "
            f"`prefect gcl create {self.name} --limit SLOTS`, or correct `concurrency_limit` in agents.yaml"
        )
