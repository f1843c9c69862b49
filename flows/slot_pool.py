"""The slots that a process has of a global concurrency limit of Prefect, and which of its trials hold them."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from passgate.tasks.errors import EngineError, PassgateError

T = TypeVar("T")

LEASE_SECONDS: Final = 120.0
"""How long slots of a process that was killed stay taken."""
OUTAGE_SECONDS: Final = 300.0
"""How long to wait for a server in trouble."""
_RENEW_SECONDS: Final = 40.0
_RETRY_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 5.0  # A slot that no trial wants is kept for the next one
_TURN_SECONDS: Final = 60.0  # How long slots are kept while others may wait for them
_PAUSE_SECONDS: Final = 3.0  # In which others take what was given back: more than `_ASK_SECONDS`
_ASK_SECONDS: Final = 2.0  # How often a process without slots asks for one
_ASK_FOR_MORE_SECONDS: Final = 10.0  # How often one with slots does
_ANSWER_SECONDS: Final = 20.0
_TELL_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 3.0
_MOST_LEASES: Final = 16  # Each is renewed by itself; one of several slots is given back as a whole


class SlotUsage(NamedTuple):
    """How many slots a limit has, and how many of them are taken by anybody."""

    size: int
    taken: int


class SlotLimit(Protocol):
    """A limit at a server. Every method raises whatever a server in trouble makes of it, and `UsageError` once there
    is no such limit.
    """

    name: str

    async def usage(self) -> SlotUsage: ...

    async def take(self, slots: int) -> UUID | None:
        """Take a lease of so many slots. Return `None` if fewer are free."""

    async def renew(self, lease: UUID) -> bool:
        """Whether the server still knows the lease."""

    async def release(self, lease: UUID) -> None: ...

    async def release_unleased(self, slots: int) -> None:
        """Give back slots whose lease the server has forgotten."""


@dataclass(eq=False)
class _Lease:
    """Slots that were taken together."""

    lease: UUID
    slots: int
    taken_at: float
    idle_since: float
    used: int = 0
    valid_until: float = 0.0
    renew_at: float = 0.0
    is_ending: bool = False  # It goes back once the trials that hold its slots have ended
    is_forgotten: bool = False  # By a server that was restarted, and that still counts its slots

    def renewed(self, asked_at: float) -> None:
        self.valid_until, self.renew_at = asked_at + LEASE_SECONDS, asked_at + _RENEW_SECONDS

    @property
    def is_kept(self) -> bool:
        return not (self.is_ending or self.is_forgotten)

    def has_slot(self, now: float) -> bool:
        return self.is_kept and self.used < self.slots and now < self.valid_until


@dataclass(frozen=True)
class _ServerAnswer(Generic[T]):
    """What a server has answered."""

    value: T


class SlotPool:
    """Takes slots of a limit when trials wait for them, hands them on from trial to trial, and gives them back.

    While its trials have the slots that they want, it asks the server for nothing but longer leases. Where the limit is
    full, half of what it has goes back every minute, for others. No trial begins by a lease that may have expired.
    """

    def __init__(self, limit: SlotLimit, size: int, trials_at_once: int, say: Callable[[str], None]) -> None:
        """`size` is how many slots the limit has; `say` tells the user what the pool waits for."""
        self._limit, self._size, self._say = limit, size, say
        self._block = -(-trials_at_once // _MOST_LEASES)
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
        """Wait for a slot and hold it while the context lasts.

        Raises `UsageError` where the limit is gone, and `EngineError` where its server has been in trouble for
        `OUTAGE_SECONDS`.
        """
        lease = await self._taken()
        try:
            yield
        finally:
            self._put_back(lease)

    @asynccontextmanager
    async def kept(self, seconds_to_end: float) -> AsyncIterator[None]:
        """Take and renew slots while the context lasts; then give back all of them.

        At the end, wait up to `seconds_to_end` for a server in trouble, but not where the trials were stopped.
        """
        keeping = asyncio.create_task(self._keep())
        seconds = _CLOSE_SECONDS
        try:
            yield
            seconds = seconds_to_end
        finally:
            self._is_closing = True
            self._wake.set()
            # A request on its way may bring slots.
            await asyncio.wait([keeping], timeout=_CLOSE_SECONDS)
            keeping.cancel()
            await self._close(seconds)

    async def _keep(self) -> None:
        try:
            while not self._is_closing:
                self._wake.clear()
                await self._renew()
                await self._release()
                await self._look_for_others()
                await self._take()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _TICK_SECONDS)
        except Exception as error:  # noqa: BLE001 - those that wait must receive it
            self._failure = error
            while turn := self._next():
                turn.set_exception(error)

    async def _close(self, seconds: float) -> None:
        """Give back all slots; what the server does not take expires, unless the server was restarted."""
        giving = [asyncio.ensure_future(self._given_back_at_last(one)) for one in self._leases]
        if giving:
            await asyncio.wait(giving, timeout=seconds)
            for one in giving:
                one.cancel()
            await asyncio.gather(*giving, return_exceptions=True)

    async def _given_back_at_last(self, one: _Lease) -> None:
        while True:
            if await self._answer(self._given_back(one)) is not None:
                return
            await asyncio.sleep(_TICK_SECONDS)

    async def _taken(self) -> _Lease:
        if self._failure is not None:
            raise self._failure
        turn: asyncio.Future[_Lease] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._hand_out()
        if not turn.done():
            self._wake.set()
        try:
            return await turn
        except asyncio.CancelledError:
            # It may have had its turn in the same moment.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._put_back(turn.result())
            raise

    def _put_back(self, lease: _Lease) -> None:
        lease.used -= 1
        lease.idle_since = _now()
        self._hand_out()
        if not lease.used and not lease.is_kept:
            self._wake.set()

    def _hand_out(self) -> None:
        while turn := self._next():
            free = [one for one in self._leases if one.has_slot(_now())]
            if not free:
                return
            # The fullest one, so that others become empty and go back.
            lease = max(free, key=lambda one: one.used)
            lease.used += 1
            turn.set_result(lease)

    def _next(self) -> asyncio.Future[_Lease] | None:
        """Who waits the longest."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    async def _renew(self) -> None:
        for one in [one for one in self._leases if not one.is_forgotten and one.renew_at <= _now()]:
            asked_at = _now()
            answer = await self._answer(self._limit.renew(one.lease))
            if answer is None:
                one.renew_at = _now() + _RETRY_SECONDS
            elif answer.value:
                one.renewed(asked_at)
            elif _now() < one.valid_until:
                one.is_forgotten = True
            else:
                # The server gave its slots to others, or was restarted since and counts them still: nobody can tell.
                self._leases.remove(one)

    async def _release(self) -> None:
        for one in [one for one in self._leases if not one.used and self._may_go(one)]:
            self._leases.remove(one)
            if await self._answer(self._given_back(one)) is None:
                one.is_ending = True
                self._leases.append(one)
                return
            if not one.is_kept:
                self._ask_at = max(self._ask_at, _now() + _PAUSE_SECONDS)

    def _may_go(self, one: _Lease) -> bool:
        return not one.is_kept or (not self._next() and _now() - one.idle_since > _IDLE_SECONDS)

    async def _given_back(self, one: _Lease) -> None:
        # A server says nothing of a lease that it has forgotten, and keeps its slots.
        if not one.is_forgotten and await self._limit.renew(one.lease):
            await self._limit.release(one.lease)
        elif one.is_forgotten or _now() < one.valid_until:
            await self._limit.release_unleased(one.slots)

    async def _look_for_others(self) -> None:
        """Where the limit is full, have half of the leases go back, the oldest first."""
        now = _now()
        kept = [one for one in self._leases if one.is_kept]
        old = sorted((one for one in kept if now - one.taken_at > _TURN_SECONDS), key=lambda one: one.taken_at)
        if not old or now < self._look_at:
            return
        self._look_at = now + _TURN_SECONDS
        answer = await self._answer(self._limit.usage())
        if answer is None:
            return
        self._size = answer.value.size
        if answer.value.taken >= self._size:
            for one in old[: -(-len(kept) // 2)]:
                one.is_ending = True

    async def _take(self) -> None:
        """Take slots for the trials that wait, in blocks, for as long as there are some."""
        while self._next() and _now() >= self._ask_at and not self._is_closing:
            held = sum(one.slots for one in self._leases)
            wanted = max(1, min(self._block, len(self._waiting), self._size - held))
            if held and held >= self._size:
                return
            asked_at = _now()
            answer = await self._answer(self._limit.take(wanted))
            if answer is None:
                self._ask_at = _now() + _ASK_SECONDS
            elif answer.value is not None:
                self._full_since = None
                one = _Lease(answer.value, wanted, taken_at=asked_at, idle_since=_now())
                one.renewed(asked_at)
                self._leases.append(one)
                self._hand_out()
            elif wanted > 1:
                self._block = wanted // 2
            else:
                self._ask_again_later(has_some=held > 0)

    def _ask_again_later(self, *, has_some: bool) -> None:
        now = _now()
        self._ask_at = now + (_ASK_FOR_MORE_SECONDS if has_some else _ASK_SECONDS)
        if has_some:
            return
        if self._full_since is None:
            self._full_since = now
        elif 0 < self._full_since < now - _TELL_SECONDS:
            self._full_since = 0.0
            name = self._limit.name
            self._say(f"the concurrency limit {name} is full: trials wait for others to end; see `prefect gcl ls`")

    async def _answer(self, asked: Awaitable[T]) -> _ServerAnswer[T] | None:
        """Return a server's answer; `None` of one in trouble. Raise `EngineError` once trials have waited too long."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                value = await asked
        except PassgateError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is Prefect's
            self._in_trouble(f"{type(error).__name__}: {error}")
            return None
        self._trouble_since = None
        return _ServerAnswer(value)

    def _in_trouble(self, why: str) -> None:
        name, now = self._limit.name, _now()
        if self._trouble_since is None:
            self._trouble_since = now
            self._say(f"Prefect does not say who has the concurrency limit {name}: trials without a slot wait ({why})")
        elif now - self._trouble_since > OUTAGE_SECONDS and self._next():
            raise EngineError(f"Prefect has not handed out slots of the concurrency limit {name} for long ({why})")


def _now() -> float:
    """Seconds on a clock that goes on while the machine is suspended, as that of the server does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()
