"""Streams as providers send them, put through an API as the meter does it, and served to the providers' own clients."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from passgate.tasks.providers.apis.interface import Api, ReplyStream
from passgate.tasks.providers.exchange import AskedCall
from tests.answering import Answer, serving
from tests.upstream_shapes import Json, event, named_event

__all__ = ["Json", "event"]

DONE = b"data: [DONE]\n\n"


def unnamed(documents: Iterable[Json]) -> bytes:
    """A stream of chat completions, with its end."""
    return b"".join(event(document) for document in documents) + DONE


def named(documents: Iterable[Json]) -> bytes:
    """A stream of events that are named by their type."""
    return b"".join(map(named_event, documents))


def documents(stream: bytes) -> list[Json]:
    """The documents of a stream, read without the parser under test."""
    blocks = stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    data = ["".join(line[6:] for line in block.split("\n") if line.startswith("data: ")) for block in blocks]
    return [json.loads(one) for one in data if one not in {"", "[DONE]"}]


@dataclass
class Refusing:
    """Takes the calls of some tools out and remembers every call that it was asked about."""

    tools: frozenset[str] = frozenset()
    asked: list[AskedCall] = field(default_factory=list)

    def __call__(self, call: AskedCall) -> bool:
        self.asked.append(call)
        return call.tool in self.tools


def refusing(*tools: str) -> Refusing:
    return Refusing(frozenset(tools))


def passed(
    api: Api, stream: bytes, withheld: Callable[[AskedCall], bool], request: Json | None = None, *, size: int = 0
) -> tuple[bytes, ReplyStream]:
    """What the agent gets of a stream that comes in pieces of so many bytes, or whole."""
    reply_stream = api.stream(request or {}, withheld)
    pieces = [stream[begin : begin + size] for begin in range(0, len(stream), size)] if size else [stream]
    return b"".join([reply_stream.feed(piece) for piece in pieces]), reply_stream


@dataclass
class Canned:
    """A server on the loopback that answers every POST alike."""

    url: str
    count: int = 0


@contextmanager
def canned(body: bytes, *, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Iterator[Canned]:
    """Serve an answer while the context lasts; a stream when the status is 200."""
    kind = "text/event-stream" if status == 200 else "application/json"
    server = Canned("")

    def answer(*_: object) -> Answer:
        server.count += 1
        return status, {"content-type": kind, **dict(headers)}, body

    with serving(answer) as server.url:
        yield server
