"""A streamed reply whose tool calls are looked at before the agent gets them; the same for every API.

Events go through in their order. From the first event of a tool call on they are held back until every call that has
begun is whole and decided on; then they go on as they came, or without the calls that are taken out.
"""

import json
from abc import ABC, abstractmethod
from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.texts import clean
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, ModelReply, Withheld
from passgate.tasks.providers.sse import MAX_EVENT_BYTES, Event, EventParser, event_bytes

Document = dict[str, Any]
Owners = tuple[int, ...]
"""To which of the reply's tool calls the pieces of an event belong, where its API does not say it in each event."""

MAX_HELD_BYTES = 2 * MAX_EVENT_BYTES
_DONE = b"[DONE]"


class Assembly(ABC):
    """One streamed reply, put together from its events as its API has them."""

    def __init__(self, withheld: Withheld) -> None:
        self.started = False
        self.ended = False
        self.characters = 0
        self._withheld = withheld
        self._pieces: list[str] = []
        self._calls: list[AskedCall] = []
        self._usage = Usage()
        self._model = ""

    @property
    def reply(self) -> ModelReply:
        self._pieces = ["".join(self._pieces)]
        return ModelReply(clean(self._pieces[0]), tuple(self._calls), self._usage, clean(self._model))

    @property
    @abstractmethod
    def undecided(self) -> bool:
        """Whether a tool call has begun that is not decided on."""

    @abstractmethod
    def take(self, event: Document) -> Owners:
        """Add an event to the reply. Raises `ApiFormatError` for one that is not of the API, or an error."""

    @abstractmethod
    def finish(self) -> None:
        """The stream says that nothing follows."""

    @abstractmethod
    def remaining(self, event: Document, owners: Owners) -> Document | None:
        """What is left of an event without the calls that are taken out: the same object when that is all of it."""

    @abstractmethod
    def give_up(self) -> None:
        """Take out the calls that are not decided on: they will not become whole."""

    @abstractmethod
    def ending(self) -> list[bytes]:
        """The events that end the reply here, as one that has reached its limit of tokens."""

    def _say(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._write(text)

    def _write(self, text: str) -> None:
        """Count what the model has written, whether it is shown or not."""
        if text:
            self.characters += len(text)
            self.started = True

    def _decide(self, call: AskedCall) -> bool:
        """Whether a call is taken out."""
        self._calls.append(call)
        return self._withheld(call)


class CheckedStream:
    """A `ReplyStream` over the assembly of one API."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._parser = EventParser()
        self._held: list[tuple[Event, Document | None, Owners]] = []
        self._held_bytes = 0

    @property
    def reply(self) -> ModelReply:
        return self._assembly.reply

    @property
    def started(self) -> bool:
        return self._assembly.started

    @property
    def ended(self) -> bool:
        return self._assembly.ended

    @property
    def characters(self) -> int:
        return self._assembly.characters

    def feed(self, chunk: bytes) -> bytes:
        """See `ReplyStream.feed`."""
        return b"".join([self._passed(event) for event in self._parser.feed(chunk)])

    def cut(self) -> bytes:
        """See `ReplyStream.cut`."""
        self._assembly.give_up()
        return self._released() + b"".join(self._assembly.ending())

    def _passed(self, event: Event) -> bytes:
        document: Document | None = None
        owners: Owners = ()
        if event.data == _DONE:
            self._assembly.finish()
        elif event.data:
            document = _document(event)
            owners = self._assembly.take(document)
        if not self._held and not self._assembly.undecided:
            return self._sent(event, document, owners)
        self._hold(event, document, owners)
        return b"" if self._assembly.undecided else self._released()

    def _hold(self, event: Event, document: Document | None, owners: Owners) -> None:
        self._held.append((event, document, owners))
        self._held_bytes += len(event.raw)
        if self._held_bytes > MAX_HELD_BYTES:
            raise ApiFormatError(f"the tool calls of the reply are larger than {MAX_HELD_BYTES} bytes")

    def _released(self) -> bytes:
        held, self._held, self._held_bytes = self._held, [], 0
        return b"".join([self._sent(*one) for one in held])

    def _sent(self, event: Event, document: Document | None, owners: Owners) -> bytes:
        if document is None:
            return event.raw
        remaining = self._assembly.remaining(document, owners)
        if remaining is document:
            return event.raw
        return b"" if remaining is None else event_bytes(remaining, event.name)


def _document(event: Event) -> Document:
    try:
        document = json.loads(event.data or b"")
    except (ValueError, RecursionError) as error:
        raise ApiFormatError(f"an event of the stream is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ApiFormatError("an event of the stream is not a JSON object")
    if event.name is not None:
        # Some servers say what an event is in its name alone.
        document.setdefault("type", event.name)
    return document
