"""What answers an agent's requests.

A model call goes to the provider and back, held to the trial's budgets. Of other requests what is free passes, what
costs is counted, and the rest is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAnswer
from passgate.tasks.metering.model_call import (
    CLIENT_ERROR,
    AdmittedRequest,
    Route,
    admit,
    agent_headers,
    answer_failure,
    error_answer,
    record_broken_reply,
    record_provider_refusal,
    refuse_unreadable,
    whole_reply,
)
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.metering.unpacking import MAX_BODY_BYTES, TOO_LARGE, unpack
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.providers.client import ProviderReply, StreamedReply, Upstream, UpstreamError
from passgate.tasks.providers.exchange import ApiFormatError, ReplyError
from passgate.tasks.providers.refusals import Refusal
from passgate.tasks.providers.registry import Provider
from passgate.tasks.providers.sse import EventParser

_QUEUE = 256
"""Pieces of a reply that wait for an agent that reads slowly: what a provider sends is not piled up without end."""
_CHARACTERS_PER_TOKEN = 6  # More than models write in prose, so that a limit that is taken for reached is reached
_CHECK_BYTES = 2048  # So often a stream is held against what is left of the budgets
_USAGE_OPTION: Final = ("stream_options", "include_usage")


async def relay(request: Request, route: Route) -> Response:
    """Answer one model call of an agent: from the provider, or with the error that says why not."""
    try:
        content = await _read_body(request)
    except ApiFormatError as error:
        return http_response(refuse_unreadable(route, error))
    admitted = await admit(route, content)
    if isinstance(admitted, ModelAnswer):
        return http_response(admitted)
    headers = _provider_headers(request)
    if admitted.stream:
        return await _stream_reply(route, admitted, headers)
    return http_response(await whole_reply(route, admitted, headers))


def http_response(answer: ModelAnswer) -> Response:
    """Return an answer as the server sends it."""
    return Response(answer.content, answer.status, dict(answer.headers))


async def _stream_reply(route: Route, admitted: AdmittedRequest, headers: Mapping[str, str]) -> Response:
    """Return the reply as it comes. A task reads it from the provider to its end, even if the agent leaves."""
    first: asyncio.Future[Response | StreamedReply] = asyncio.get_running_loop().create_future()
    outlet, call, target = Outlet(is_array=route.api.answers_array), admitted.call, route.api.target(route.model)

    def begin(answer: Response | StreamedReply) -> None:
        # The waiting task may have been cancelled, and the future with it.
        if not first.done():
            first.set_result(answer)

    async def ask(content: bytes) -> ModelAnswer | None:
        """Pass on what is answered; gives a refusal."""
        async with route.upstream.stream(target, content, headers, progress=call.progress) as answer:
            if answer.status >= CLIENT_ERROR:
                whole = b"".join([chunk async for chunk in answer.chunks()])
                return ModelAnswer(answer.status, whole, agent_headers(answer.headers))
            begin(answer)
            await _pump(route, admitted, answer, outlet)
            return None

    async def fetch() -> None:
        try:
            refused = await _ask_with_fallback(route, admitted, ask)
            if refused:
                record_provider_refusal(route, admitted, Refusal.from_reply(refused.status, refused.content))
                begin(http_response(refused))
        except (UpstreamError, ApiFormatError) as error:
            begin(http_response(answer_failure(route, admitted, error)))
        finally:
            call.abandon()
            first.cancel()
            outlet.end()

    task = asyncio.create_task(fetch())
    route.trial.attach(call, task)
    answer = await first
    if isinstance(answer, Response):
        return answer
    own_type = {"content-type": "application/json"} if route.api.answers_array else {}
    return StreamingResponse(outlet.pieces(), answer.status, agent_headers(answer.headers) | own_type)


class Outlet:
    """Pieces of a reply on their way to the agent, not too many at a time. When the agent has left they are dropped."""

    def __init__(self, *, is_array: bool = False) -> None:
        """Of an array the pieces are whole events, whose documents become its elements."""
        self._events = EventParser() if is_array else None
        self._begun = False
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_QUEUE)
        self._left = False

    async def put(self, piece: bytes) -> None:
        """Send a piece on, once there is room for it."""
        if self._events is not None:
            elements = [event.data for event in self._events.feed(piece) if event.data]
            piece = b"".join([(b",\n" if self._begun or n else b"[") + one for n, one in enumerate(elements)])
            self._begun = self._begun or bool(elements)
        if piece and not self._left:
            await self._room.acquire()
            self._queue.put_nowait(piece)

    def end(self) -> None:
        """End the reply, without waiting: the caller may have been cancelled."""
        if self._events is not None:
            self._queue.put_nowait(b"]" if self._begun else b"[]")
        self._queue.put_nowait(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield what the agent gets."""
        try:
            while (piece := await self._queue.get()) is not None:
                self._room.release()
                yield piece
        finally:
            self._left = True
            self._room.release()


async def _ask_with_fallback(
    route: Route, admitted: AdmittedRequest, ask: Callable[[bytes], Awaitable[ModelAnswer | None]]
) -> ModelAnswer | None:
    """Ask, and once more without the option to say what was used where a provider may not know it."""
    refused = await ask(admitted.content)
    if refused is None or admitted.plain is None:
        return refused
    if not Refusal.from_reply(refused.status, refused.content).may_blame_option(_USAGE_OPTION):
        return refused
    refused = await ask(admitted.plain)
    if refused is None:
        route.upstream.without_usage.add(route.api.name)
    return refused


async def _pump(route: Route, admitted: AdmittedRequest, answer: StreamedReply, outlet: Outlet) -> None:
    """Pass a streamed reply on until it ends, breaks or reaches a limit. The call is over before its last piece goes
    out, for an agent that has it may be gone at once.
    """
    call = admitted.call
    stream = route.api.stream(admitted.body, call.withhold)
    last = bytearray()
    unchecked = 0
    most = call.admission.max_tokens_out
    try:
        async for chunk in answer.chunks():
            piece = stream.feed(chunk)
            unchecked += len(chunk)
            if stream.started:
                call.start_writing()
            if stream.ended:
                last += piece
                continue
            await outlet.put(piece)
            if unchecked >= _CHECK_BYTES:
                unchecked = 0
                if most is not None and stream.characters >= most * _CHARACTERS_PER_TOKEN:
                    call.cut(stream.reply)
                    await outlet.put(stream.cut())
                    return
        if not stream.ended:
            # The last event may lack the blank line after it.
            last += stream.feed(b"\n\n")
    except (MeasurementError, ApiFormatError) as error:
        if not stream.ended:
            await _break_off(route, admitted, error, outlet)
            return
    if stream.ended:
        route.upstream.has_answered.add(route.api.name)
        call.answer(stream.reply)
        await outlet.put(bytes(last))
    else:
        await _break_off(route, admitted, ApiFormatError("the stream ended before the reply did"), outlet)


async def _break_off(route: Route, admitted: AdmittedRequest, error: Exception, outlet: Outlet) -> None:
    if isinstance(error, ReplyError):
        message = record_broken_reply(route, admitted, error)
    else:
        if not isinstance(error, MeasurementError):
            error = MeasurementError(f"the provider's stream ended early: {error}", transient=True)
        admitted.call.fail(error)
        message = UNMASKED.render(error.message)
    await outlet.put(route.api.error_event("provider_unavailable", message))


async def pass_on(request: Request, upstream: Upstream, target: str, *, is_free: bool) -> Response:
    """Answer a request that is no model call: what is free passes, such as lists of models. `target` is decoded."""
    try:
        if is_free and request.method == "POST":
            content = await _read_body(request)
            return _plain(await upstream.send(target, content, _provider_headers(request), seconds=None))
        if is_free:
            return _plain(await upstream.get(target, _provider_headers(request), seconds=None))
    except UpstreamError as error:
        return _own_error(503, "provider_unavailable", UNMASKED.render(error.message))
    except ApiFormatError as error:
        return _own_error(400, "invalid_request_error", str(error))
    path = target.partition("?")[0]
    message = f"passgate passes on model calls, embeddings and lists of models, and not {request.method} {path}"
    return _own_error(404, "not_metered", message)


def no_upstream(trial: TrialMeter, provider: Provider) -> Response:
    """Answer a request to a provider of which no address is known, which is no fault of the agent."""
    message = f"the agent calls {provider.name}, and {provider.base_url_variables[0]} is not set: set it"
    trial.was_asked = True
    trial.ledger.unanswered(MeasurementError(message))
    return _own_error(404, "unknown_provider", message)


def _own_error(status: int, code: str, message: str) -> Response:
    return http_response(error_answer(None, status, code, message))


def _plain(answer: ProviderReply) -> Response:
    return Response(answer.body, answer.status, {"content-type": answer.headers.get("content-type", "text/plain")})


async def _read_body(request: Request) -> bytes:
    """Read the body of a request and unpack it. Raises `ApiFormatError`."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MAX_BODY_BYTES:
            raise ApiFormatError(TOO_LARGE)
    return unpack(bytes(parts), request.headers.get("content-encoding", ""))


def _provider_headers(request: Request) -> dict[str, str]:
    """Return the agent's headers for the provider, which gets the body unpacked. A header that was sent twice is one
    list.
    """
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        if name != "content-encoding":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
