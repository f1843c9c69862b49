"""The client that every model call goes through: retried, limited, and given up in time."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

import httpcore

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.model.quotes import quote, raw
from passgate.tasks.providers.calls import (
    CallProgress,
    Calls,
    ProviderCall,
    Stage,
    headers_back,
    mask_body,
    mask_secrets,
)
from passgate.tasks.providers.concurrency import ConcurrencyLimiter
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.retries import (
    RETRY_POLICY,
    AttemptError,
    Breaker,
    RetryPolicy,
    check_head,
    check_refusal,
    parse_reply,
)
from passgate.tasks.providers.wire import Wire, breakdowns, pieces

Found = TypeVar("Found")
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_CLIENT_ERROR: Final = 400
_LONGEST_FAULT: Final = 400  # Characters of what a failed attempt came to


class UpstreamError(MeasurementError):
    """A provider is unavailable, which is its own fault. The text says which, what happened and how often."""


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """A whole reply. Below 400 its status is 2xx and `document` a JSON object."""

    status: int
    headers: Mapping[str, str]  # By lower-case name, without those that concern one connection only
    body: bytes
    document: Any  # The JSON document of the body; `None` if it is none, which only happens from 400 on


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """A reply whose status and headers are there and whose body is still coming. Below 400 it is an event stream."""

    status: int
    headers: Mapping[str, str]
    chunks: Callable[[], AsyncIterator[bytes]]
    """The body, piece by piece, once. Raises `UpstreamError` when the connection breaks or is silent too long."""


@dataclass(slots=True)
class _ReplyHead:
    """The beginning of an answer, or a refusal with its body."""

    response: httpcore.Response
    headers: Mapping[str, str]
    refusal: bytes | None
    epoch: int


class Upstream:
    """One provider endpoint, shared by all trials and the judge of a run. Belongs to one event loop."""

    def __init__(
        self, endpoint: ResolvedEndpoint, *, timeout_seconds: float, retry_policy: RetryPolicy = RETRY_POLICY
    ) -> None:
        """`timeout_seconds` is the longest silence. Nothing is connected or loaded before the first call."""
        self.name = endpoint.url.netloc.decode("ascii")
        self.missing_key = "" if endpoint.key else endpoint.key_variable  # The variable that should hold its key
        self._policy = retry_policy
        self._silence = timeout_seconds
        self._calls = Calls(endpoint, connect_seconds=retry_policy.connect_seconds, silence=timeout_seconds)
        self._wire = Wire(endpoint)
        self._breaker = Breaker(retry_policy)
        self._limiter = ConcurrencyLimiter()
        self.has_answered = set[str]()  # The names of APIs in which it has answered a call
        self.without_usage = set[str]()  # Those in which it does not know the option to say what a stream used

    async def send(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        seconds: float | None,
        progress: CallProgress | None = None,
    ) -> ProviderReply:
        """POST a JSON document and wait for the whole reply, at most `seconds` with all attempts. `progress` is kept
        up to date.

        Statuses from 400 on that another attempt would not change come back, without the key if they repeat it.
        Raises `UpstreamError`.
        """
        return await self._call(self._calls.new(path, body, headers, seconds, progress), self._whole)

    async def get(
        self, path_and_query: str, headers: Mapping[str, str] = _NO_HEADERS, *, seconds: float | None
    ) -> ProviderReply:
        """Do as `send`, without a body."""
        return await self._call(self._calls.new(path_and_query, None, headers, seconds), self._whole)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        progress: CallProgress | None = None,
    ) -> AsyncIterator[StreamedReply]:
        """POST a JSON document; attempts are made until the reply's status and headers are there.

        `progress` is kept up to date. Raises `UpstreamError`.
        """
        call = self._calls.new(path, body, headers, None, progress)
        stack, reply = await self._call(call, self._open_stream)
        broken = False

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal broken
            if reply.refusal is not None:
                yield reply.refusal
                return
            try:
                async for piece in rest:
                    yield piece
            except AttemptError as fault:
                broken = True
                self._record_fault(call, fault, reply.epoch)
                raise self._error(call, call.progress.last_fault, transient=True) from fault

        async with stack, aclosing(pieces(reply.response, self._silence)) as rest:
            yield StreamedReply(reply.response.status, reply.headers, chunks)
            if not broken:
                self._record_success()

    async def close(self) -> None:
        """Close the connections that are kept; no call may be under way."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(self, call: ProviderCall, ask: Callable[[ProviderCall], Awaitable[Found]]) -> Found:
        """Ask until there is an answer, the call is given up or its time is over. Raises `UpstreamError`."""
        try:
            async with asyncio.timeout_at(call.deadline):
                while self._breaker.admits():
                    try:
                        return await ask(call)
                    except AttemptError as fault:
                        pause = self._pause_after(call, fault)
                    call.progress.stage = Stage.PAUSE
                    if await self._breaker.opens_within(pause):
                        break
        except TimeoutError:
            message = call.progress.message_at(f"{call.seconds:g} s were over")
            raise UpstreamError(message, transient=True) from None
        raise self._refusal(call)

    def _pause_after(self, call: ProviderCall, fault: AttemptError) -> float:
        """Return the seconds until the next attempt. Raises `UpstreamError` if there is to be none."""
        pause = fault.asked_pause or self._policy.pause(call.progress.attempts, random.random())  # noqa: S311 - no secret
        if fault.overload:
            self._limiter.hold(min(pause, self._policy.longest_pause))
        if self._breaker.is_open:
            raise self._refusal(call)
        if fault.final or call.progress.attempts >= self._policy.attempts:
            raise self._error(call, call.progress.last_fault, transient=not fault.final)
        if pause > call.seconds_left or (fault.asked_pause or 0) > self._policy.longest_retry_after:
            due = f"; the next attempt is due in {pause:.3g} s, which is too long to wait"
            raise self._error(call, raw(call.progress.last_fault, due), transient=True)
        return pause

    async def _whole(self, call: ProviderCall) -> ProviderReply:
        async with self._exchange(call) as reply:
            body = await self._body(reply.response) if reply.refusal is None else reply.refusal
            status = reply.response.status
            check_head(status, reply.headers, "json")
            answer = ProviderReply(status, reply.headers, body, parse_reply(status, body))
            self._record_success()
        return answer

    async def _open_stream(self, call: ProviderCall) -> tuple[AsyncExitStack, _ReplyHead]:
        async with AsyncExitStack() as stack:
            reply = await stack.enter_async_context(self._exchange(call))
            check_head(reply.response.status, reply.headers, "text/event-stream")
            return stack.pop_all(), reply

    @asynccontextmanager
    async def _exchange(self, call: ProviderCall) -> AsyncIterator[_ReplyHead]:
        """Make one attempt: a turn, a connection and the beginning of an answer that needs no other attempt."""
        call.progress.stage = Stage.TURN
        while not await self._limiter.enter(call.age):
            if self._breaker.is_open:
                raise self._refusal(call)
        epoch = self._limiter.window.epoch
        call.progress.attempts += 1
        call.progress.asked_at = time.monotonic()
        try:
            connection, response = await self._send(call)
            try:
                headers = headers_back(response.headers)
                refusal = None
                if response.status >= _CLIENT_ERROR:
                    refusal = mask_body(await self._body(response), call.request.headers)
                    check_refusal(response.status, headers, refusal)
                yield _ReplyHead(response, headers, refusal, epoch)
            finally:
                await self._wire.release(connection, response)
        except AttemptError as fault:
            self._record_fault(call, fault, epoch)
            raise
        finally:
            self._limiter.leave()

    async def _send(self, call: ProviderCall) -> tuple[httpcore.AsyncConnectionInterface, httpcore.Response]:
        call.progress.stage = Stage.ANSWER
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            with breakdowns(self._silence):
                found = await self._wire.ask(call.request)
        except asyncio.CancelledError:
            # A provider that lets every call run out of its time is as dead as one that refuses them.
            if call.seconds_left <= 0:
                self._record_failure("it did not answer in time", clock() - begun)
            raise
        call.progress.stage = Stage.REST if found[1].status < _CLIENT_ERROR else Stage.REFUSAL
        return found

    async def _body(self, response: httpcore.Response) -> bytes:
        return b"".join([piece async for piece in pieces(response, self._silence)])

    def _record_fault(self, call: ProviderCall, fault: AttemptError, epoch: int) -> None:
        call.progress.last_fault = quote(mask_secrets(str(fault), call.request.headers), _LONGEST_FAULT)
        if fault.overload:
            self._limiter.window.shrink(self._limiter.in_flight, epoch)
        if fault.alive:
            self._breaker.record_success()
        else:
            self._record_failure(call.progress.last_fault, fault.silence)

    def _record_failure(self, what: Raw, silence: float) -> None:
        if self._breaker.record_failure(what, silence):
            self._limiter.send_away()

    def _record_success(self) -> None:
        self._breaker.record_success()
        self._limiter.window.grow(self._limiter.in_flight)

    def _refusal(self, call: ProviderCall) -> UpstreamError:
        return self._error(call, self._breaker.reason, transient=False)

    def _error(self, call: ProviderCall, what: Raw, *, transient: bool) -> UpstreamError:
        return UpstreamError(call.progress.message(what), transient=transient)
