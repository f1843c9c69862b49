"""Global concurrency limits of Prefect, which trials of several runs share: each trial holds a slot by a lease.

Prefect's own `concurrency()` is not used: a server keeps its leases in memory, and counts their slots for ever after a
restart.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar
from uuid import UUID

from httpx import HTTPStatusError
from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.exceptions import ObjectNotFound

from passgate.flows.flow_runs import seconds_to_report
from passgate.tasks.errors import EngineError, PassgateError, UsageError
from passgate.tasks.execution.worker import Slot
from passgate.tasks.model.run import Plan
from passgate.tasks.reports.messages import warn

T = TypeVar("T")

LEASE_SECONDS: Final = 120.0  # How long slots of a process that was killed stay taken
OUTAGE_SECONDS: Final = 300.0  # How long to wait for a server in trouble
_RENEW_SECONDS: Final = 40.0
_RETRY_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 5.0  # A slot that no trial wants is kept for the next one
_TURN_SECONDS: Final = 60.0  # How long slots are kept while others may wait for them
_PAUSE_SECONDS: Final = 3.0  # In which others take what was released: more than `_ASK_SECONDS`
_ASK_SECONDS: Final = 2.0  # How often a process without slots asks for one
_ASK_FOR_MORE_SECONDS: Final = 10.0  # How often one with slots does
_ANSWER_SECONDS: Final = 20.0
_WARN_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 3.0


@asynccontextmanager
async def shared_limit(plan: Plan) -> AsyncIterator[Slot]:
    """Open the slots of the limit that a plan's agent names. Raises `UsageError` without it, `EngineError`."""
    if plan.agent.concurrency_limit is None:
        yield nullcontext
        return
    async with get_client() as client:
        limit = GlobalLimit(client, plan.agent.concurrency_limit)
        await limit.check()
        pool = SlotPool(limit, warn)
        async with pool.open(seconds_to_report()):
            yield pool.slot


async def refuse_missing_limit(plan: Plan) -> None:
    """Raise as `shared_limit` if the limit of a plan's agent is missing, before the first batch."""
    if plan.agent.concurrency_limit is not None:
        async with get_client() as client:
            await GlobalLimit(client, plan.agent.concurrency_limit).check()


class GlobalLimit:
    """A limit at a server. Every method raises whatever a server in trouble raises."""

    def __init__(self, client: PrefectClient, name: str) -> None:
        self._client, self.name = client, name

    async def check(self) -> None:
        """Raise `UsageError` if there is no such limit. Ask a server in trouble again for a while."""
        if self._client.server_type.value == "ephemeral":
            raise UsageError(
                f"the concurrency limit {self.name!r} needs a Prefect server that runs share: set PREFECT_API_URL"
            )
        deadline, is_known = time.monotonic() + OUTAGE_SECONDS, False
        while not is_known:
            try:
                await self.is_full()
                is_known = True
            except UsageError:
                raise
            except Exception as error:
                if time.monotonic() > deadline:
                    what = f"Prefect does not say whether there is a concurrency limit {self.name!r}"
                    raise EngineError(f"{what}: {error}") from error
                await asyncio.sleep(_RETRY_SECONDS)

    async def is_full(self) -> bool:
        """Return whether no slot is free. Raise `UsageError` if the limit is missing or a rate limit."""
        try:
            found = await self._client.read_global_concurrency_limit_by_name(self.name)
        except ObjectNotFound as error:
            raise self._missing_error() from error
        if found.slot_decay_per_second:
            raise UsageError(
                f"the concurrency limit {self.name!r} is a rate limit, whose slots come back by themselves: "
                f"`prefect gcl update {self.name} --slot-decay-per-second 0`, or name another one in agents.yaml"
            )
        return found.active_slots >= found.limit

    async def take(self) -> UUID | None:
        """Take a lease of one slot. Return `None` if none is free."""
        try:
            response = await self._client.increment_concurrency_slots_with_lease(
                names=[self.name], slots=1, mode="concurrency", lease_duration=LEASE_SECONDS
            )
        except HTTPStatusError as error:
            # It is full, or has no slots at all.
            if error.response.status_code in {HTTPStatus.LOCKED, HTTPStatus.UNPROCESSABLE_ENTITY}:
                return None
            raise
        answer: dict[str, Any] = response.json()
        if not answer["limits"]:
            raise self._missing_error()
        return UUID(answer["lease_id"])

    async def renew(self, lease: UUID) -> bool:
        """Renew a lease. Return whether the server still knows it."""
        try:
            await self._client.renew_concurrency_lease(lease_id=lease, lease_duration=LEASE_SECONDS)
        except HTTPStatusError as error:
            if error.response.status_code == HTTPStatus.GONE:
                return False
            raise
        return True

    async def release(self, lease: UUID) -> None:
        """Release the slot of a lease."""
        await self._client.release_concurrency_slots_with_lease(lease_id=lease)

    async def release_forgotten(self) -> None:
        """Release a slot whose lease the server has forgotten."""
        await self._client.release_concurrency_slots(names=[self.name], slots=1, occupancy_seconds=1.0)

    def _missing_error(self) -> UsageError:
        return UsageError(
            f"the Prefect server has no concurrency limit {self.name!r}: make it with "
            f"`prefect gcl create {self.name} --limit SLOTS`, or correct `concurrency_limit` in agents.yaml"
        )


@dataclass(eq=False)
class _Lease:
    """A slot of this process."""

    lease: UUID
    taken_at: float
    idle_since: float
    valid_until: float
    renew_at: float
    is_used: bool = False  # By a trial
    is_ending: bool = False  # Released once its trial has ended
    is_forgotten: bool = False  # By a server that was restarted, and that still counts its slot

    @property
    def is_kept(self) -> bool:
        return not (self.is_ending or self.is_forgotten)


class SlotPool:
    """Takes slots of a limit when trials wait for them, hands them on from trial to trial, and releases them.

    While its trials have the slots that they want, it asks the server for nothing but longer leases. If the limit is
    full, half of its slots go back every minute, for others. No trial begins by a lease that may have expired.
    """

    def __init__(self, limit: GlobalLimit, say: Callable[[str], None]) -> None:
        """`say` tells the user what trials wait for."""
        self._limit, self._say = limit, say
        self._leases: list[_Lease] = []
        self._waiting: deque[asyncio.Future[_Lease]] = deque()
        self._wake = asyncio.Event()
        self._is_closing = False
        self._ask_at = self._look_at = 0.0
        self._full_since: float | None = None
        self._trouble_since: float | None = None
        self._failure: Exception | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it. Raises `UsageError` without the limit, `EngineError` after `OUTAGE_SECONDS`."""
        if self._failure is not None:
            raise self._failure
        turn: asyncio.Future[_Lease] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._hand_out()
        if not turn.done():
            self._wake.set()
        try:
            lease = await turn
        except asyncio.CancelledError:
            # It may have had its turn in the same moment.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._put_back(turn.result())
            raise
        try:
            yield
        finally:
            self._put_back(lease)

    @asynccontextmanager
    async def open(self, seconds_to_end: float) -> AsyncIterator[None]:
        """Take and renew slots while the context lasts. At the end release all, and wait unless it was stopped."""
        keeping = asyncio.create_task(self._keep())
        seconds = _CLOSE_SECONDS
        try:
            yield
            seconds = seconds_to_end
        finally:
            self._is_closing = True
            self._wake.set()
            # A request on its way may bring a slot.
            await asyncio.wait([keeping], timeout=_CLOSE_SECONDS)
            keeping.cancel()
            # What the server does not accept expires, unless the server was restarted.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*map(self._release_at_last, self._leases))

    async def _release_at_last(self, one: _Lease) -> None:
        while True:
            with suppress(Exception):
                return await self._ask(self._release(one))
            await asyncio.sleep(_TICK_SECONDS)

    async def _keep(self) -> None:
        try:
            while not self._is_closing:
                self._wake.clear()
                try:
                    await self._renew()
                    await self._release_idle()
                    await self._look_for_others()
                    await self._take()
                except PassgateError:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
                    self._report_trouble(f"{type(error).__name__}: {error}")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _TICK_SECONDS)
        except Exception as error:  # noqa: BLE001 - the trials that wait raise it
            self._failure = error
            while turn := self._next_turn():
                turn.set_exception(error)

    async def _ask(self, request: Awaitable[T]) -> T:
        async with asyncio.timeout(_ANSWER_SECONDS):
            answer = await request
        self._trouble_since = None
        return answer

    def _put_back(self, lease: _Lease) -> None:
        lease.is_used, lease.idle_since = False, _now()
        self._hand_out()
        if not lease.is_kept:
            self._wake.set()

    def _hand_out(self) -> None:
        while turn := self._next_turn():
            free = [one for one in self._leases if one.is_kept and not one.is_used and _now() < one.valid_until]
            if not free:
                return
            # The last one that was used, so that others stay idle and go back.
            lease = max(free, key=lambda one: one.idle_since)
            lease.is_used = True
            turn.set_result(lease)

    def _next_turn(self) -> asyncio.Future[_Lease] | None:
        """Return the turn that has waited the longest."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    async def _renew(self) -> None:
        for one in [one for one in self._leases if not one.is_forgotten and one.renew_at <= _now()]:
            now = _now()
            one.renew_at = now + _RETRY_SECONDS
            if await self._ask(self._limit.renew(one.lease)):
                one.valid_until, one.renew_at = now + LEASE_SECONDS, now + _RENEW_SECONDS
            elif _now() < one.valid_until:
                one.is_forgotten = True
            else:
                # The server gave its slot to others, or was restarted since and counts it still: nobody can tell.
                self._leases.remove(one)

    async def _release_idle(self) -> None:
        for one in [one for one in self._leases if not one.is_used]:
            is_idle = not self._next_turn() and _now() - one.idle_since > _IDLE_SECONDS
            # A trial may have taken it while the server answered for another one.
            if (one.is_kept and not is_idle) or one.is_used:
                continue
            if not one.is_kept:
                self._ask_at = max(self._ask_at, _now() + _PAUSE_SECONDS)
            one.is_ending = True
            await self._ask(self._release(one))
            self._leases.remove(one)

    async def _release(self, one: _Lease) -> None:
        # A server ignores the release of a lease that it has forgotten, and keeps its slot.
        if not one.is_forgotten and await self._limit.renew(one.lease):
            await self._limit.release(one.lease)
        elif one.is_forgotten or _now() < one.valid_until:
            await self._limit.release_forgotten()

    async def _look_for_others(self) -> None:
        """Give back half of the slots, the oldest first, if the limit is full."""
        now, kept = _now(), [one for one in self._leases if one.is_kept]
        old = [one for one in kept if now - one.taken_at > _TURN_SECONDS]  # In the order in which they were taken
        if old and now >= self._look_at:
            self._look_at = now + _TURN_SECONDS
            if await self._ask(self._limit.is_full()):
                for one in old[: -(-len(kept) // 2)]:
                    one.is_ending = True

    async def _take(self) -> None:
        """Take slots for the trials that wait, for as long as there are some."""
        while self._next_turn() and _now() >= self._ask_at and not self._is_closing:
            now = _now()
            lease = await self._ask(self._limit.take())
            if lease is not None:
                self._full_since = None
                valid_until, renew_at = now + LEASE_SECONDS, now + _RENEW_SECONDS
                self._leases.append(_Lease(lease, now, _now(), valid_until, renew_at))
                self._hand_out()
            elif self._leases:
                self._ask_at = now + _ASK_FOR_MORE_SECONDS
            else:
                self._ask_at = now + _ASK_SECONDS
                if self._full_since is None:
                    self._full_since = now
                elif 0 < self._full_since < now - _WARN_SECONDS:
                    self._full_since = 0.0
                    full = f"the concurrency limit {self._limit.name} is full"
                    self._say(f"{full}: trials wait for others to end; see `prefect gcl ls`")

    def _report_trouble(self, why: str) -> None:
        """Tell the user of the trouble. Raise `EngineError` once trials have waited too long."""
        name, now = self._limit.name, _now()
        if self._trouble_since is None:
            self._trouble_since = now
            self._say(f"Prefect does not say who has the concurrency limit {name}: trials without a slot wait ({why})")
        elif now - self._trouble_since > OUTAGE_SECONDS and self._next_turn():
            raise EngineError(f"Prefect has not handed out slots of the concurrency limit {name} for long ({why})")


def _now() -> float:
    """Return seconds on a clock that goes on while the machine is suspended, as that of the server does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()
