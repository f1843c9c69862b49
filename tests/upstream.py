"""A model provider on the loopback that says what a test scripts: chat completions, responses, Anthropic's messages.

    with ScriptedUpstream([Says("I look.", calls=[("read", {"path": "a"})]), Says("Done.")]) as upstream:
        OpenAI(base_url=upstream.openai_base_url, api_key="any") ...
    assert upstream.count == 2

A script is a list of replies, the last one repeating, or a function of the request's number (from 0) and its body.
A reply is what the model `Says` or a fault.
"""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from tests import upstream_replies as replies
from tests.provider_apis import chat, gemini, messages, responses
from tests.upstream_replies import SOMETHING, Reply
from tests.upstream_shapes import MODELS, Answer, Json, Says

Script = Sequence[Reply] | Callable[[int, Json], Reply]


@dataclass(frozen=True)
class Received:
    """One request as it came. `time` is of `time.monotonic()`; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    time: float

    @property
    def body(self) -> Json:
        return json.loads(self.raw) if self.raw else {}


@dataclass(frozen=True)
class Answerer:
    """One API: its reply as a body and as events."""

    body: Callable[[Answer], Json]
    events: Callable[[Answer], Iterable[bytes]]


APIS = {
    "/chat/completions": Answerer(chat.body, chat.events),
    "/responses/compact": Answerer(responses.body, lambda answer: ()),
    "/responses": Answerer(responses.body, responses.events),
    "/messages": Answerer(messages.body, messages.events),
    ":generateContent": Answerer(gemini.body, gemini.events),
    ":streamGenerateContent": Answerer(gemini.body, gemini.events),
    ":countTokens": Answerer(lambda answer: {"totalTokens": answer.says.tokens_in}, lambda answer: ()),
    "/embeddings": Answerer(chat.embedding, lambda answer: ()),
}


class ScriptedUpstream:
    """The provider, a server in a thread of its own while the context lasts."""

    def __init__(self, script: Script = (SOMETHING,), *, port: int = 0) -> None:
        self.script = script
        """May be replaced between requests; numbers go on counting."""
        self.requests: list[Received] = []
        """Every request, those for models' lists included."""
        self.most_at_once = 0
        """The most model calls that were being answered at the same time."""
        self._at_once = 0
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port = int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        return self.url

    @property
    def calls(self) -> list[Received]:
        """The model calls among the requests."""
        return [request for request in list(self.requests) if request.method == "POST"]

    @property
    def count(self) -> int:
        """How many model calls came."""
        return len(self.calls)

    def says(self, *replies: Reply) -> None:
        """A new script for the requests from now on."""
        begin = self.count
        self.script = lambda number, _: replies[min(number - begin, len(replies) - 1)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; requests from now on are refused by the operating system."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with closing(self._loop):
            self._loop.run_until_complete(self._answer_until_stopped())

    async def _answer_until_stopped(self) -> None:
        listening = await asyncio.start_server(self._connection, sock=self._socket.dup(), limit=2**26)
        await self._stopped.wait()
        listening.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request = await _read(reader)
                number = self.count
                self.requests.append(request)
                async with self._counted(request):
                    if not await self._answer(request, number, writer):
                        break
        writer.transport.abort()

    @asynccontextmanager
    async def _counted(self, request: Received) -> AsyncIterator[None]:
        weight = int(request.method == "POST")
        self._at_once += weight
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            self._at_once -= weight

    async def _answer(self, request: Received, number: int, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        path = request.path.partition("?")[0]
        api = next((api for end, api in APIS.items() if path.endswith(end)), None)
        if request.method != "POST" or api is None:
            found = request.method == "GET" and path.endswith("/models")
            return await _send(writer, 200 if found else 404, MODELS if found else _error(404))
        return await _reply(self._scripted(number, request), Answer(SOMETHING, number, request.body, path), api, writer)

    def _scripted(self, number: int, request: Received) -> Reply:
        if callable(self.script):
            return self.script(number, request.body)
        return self.script[min(number, len(self.script) - 1)]


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    if headers.get("transfer-encoding") == "chunked":
        raw = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, path, headers, raw, time.monotonic())


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")


async def _reply(reply: Reply, answer: Answer, api: Answerer, writer: asyncio.StreamWriter) -> bool:
    match reply:
        case replies.Down():
            return False
        case replies.Status(code, headers, body):
            return await _send(writer, code, _error(code) if body is None else body, dict(headers))
        case replies.WrongContentType():
            return await _send(writer, 200, b"<html><body>Sign in to the hotel's network</body></html>")
        case replies.Silent(seconds):
            await asyncio.sleep(seconds)
    says = reply if isinstance(reply, Says) else getattr(reply, "says", SOMETHING)
    answer = replace(answer, says=says)
    if answer.streams:
        return await _send_stream(writer, list(api.events(answer)), reply)
    return await _send_body(writer, json.dumps(api.body(answer)).encode(), reply)


async def _send_body(writer: asyncio.StreamWriter, body: bytes, reply: Reply) -> bool:
    middle, whole = len(body) // 2, {"content-type": "application/json", "content-length": str(len(body))}
    match reply:
        case replies.MalformedJson():
            body = body[:middle]
        case replies.ResetMidBody() | replies.ResetMidStream() | replies.CutShort():
            writer.write(_head(200, whole) + body[:middle])
            return await _reset(writer)
        case replies.Slow(pause):
            writer.write(_head(200, whole))
            for begin in range(0, len(body), 50):
                await asyncio.sleep(pause)
                writer.write(body[begin : begin + 50])
            await writer.drain()
            return True
    return await _send(writer, 200, body, {"content-type": "application/json"})


async def _send_stream(writer: asyncio.StreamWriter, events: list[bytes], reply: Reply) -> bool:
    writer.write(_head(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}))
    match reply:
        case replies.MalformedJson():
            events = [events[0], b'data: {"choices": [{"del\n\n', *events[2:]]
        case replies.ResetMidStream(after_events) | replies.CutShort(after_events):
            events = events[:after_events]
        case replies.ResetMidBody():
            whole = b"".join(events)
            events = [whole[: len(whole) // 2]]
    for one in events:
        if isinstance(reply, replies.Slow):
            await asyncio.sleep(reply.chunk_pause)
        writer.write(b"%x\r\n%b\r\n" % (len(one), one))
        await writer.drain()
    if isinstance(reply, replies.ResetMidStream | replies.ResetMidBody):
        return await _reset(writer)
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _reset(writer: asyncio.StreamWriter) -> bool:
    await writer.drain()
    await asyncio.sleep(0.05)  # What was sent shall arrive before the reset does.
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


async def _send(
    writer: asyncio.StreamWriter, status: int, body: Json | bytes, headers: dict[str, str] | None = None
) -> bool:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/html" if isinstance(body, bytes) else "application/json"
    writer.write(_head(status, {"content-type": kind, "content-length": str(len(raw)), **(headers or {})}) + raw)
    await writer.drain()
    return True


def _head(status: int, headers: Mapping[str, Any]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _error(status: int) -> Json:
    """An error that both families of APIs can read."""
    kind = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}.get(status, "api_error")
    error = {"message": f"Scripted error {status}", "type": kind, "param": None, "code": None}
    return {"type": "error", "error": error}
