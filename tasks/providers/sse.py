"""Server-sent events, read from bytes that were cut anywhere.

The format is that of https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
"""

import json
import re
from typing import Any, NamedTuple

from passgate.tasks.providers.exchange import ApiFormatError

MAX_EVENT_BYTES = 16 * 1024 * 1024

# A carriage return at the very end may be the first half of a line end: what follows it has to be seen first.
_LINE_END = rb"(?:\r\n|\n|\r(?!\n|\Z))"
_BLANK_LINE = re.compile(_LINE_END * 2)
_LONGEST_BLANK_LINE = 4
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event, or a comment or an empty one, which have no data."""

    raw: bytes  # As it came, with the blank line that ends it
    name: str | None
    data: bytes | None


class EventParser:
    """Finds the events in the pieces of a stream."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._waiting = bytearray()
        self._searched = 0
        self._is_first = True

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that are complete with this piece, in order; together their `raw` is all that came so far,
        without an incomplete last event.

        Raises `ApiFormatError` for an event that is too large. An event that the stream's end cuts short never becomes
        complete; `feed(b"\\n\\n")` ends it.
        """
        self._waiting += piece
        events, begin = [], 0
        for match in _BLANK_LINE.finditer(self._waiting, self._searched):
            events.append(self._event(bytes(self._waiting[begin : match.end()])))
            begin = match.end()
        del self._waiting[:begin]
        self._searched = max(0, len(self._waiting) - _LONGEST_BLANK_LINE)
        if len(self._waiting) > self._max_event_bytes:
            raise ApiFormatError(f"an event of the stream is larger than {self._max_event_bytes} bytes")
        return events

    def _event(self, raw: bytes) -> Event:
        content = raw.removeprefix(_BYTE_ORDER_MARK) if self._is_first else raw
        self._is_first = False
        name, data = None, []
        for line in content.splitlines():
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ").decode("utf-8", "replace")
        return Event(raw, name, b"\n".join(data) if data else None)


def event_bytes(document: Any, name: str | None = None) -> bytes:
    """Return an event with a JSON document as its data."""
    # Without characters beyond ASCII: half of a surrogate pair, which JSON may hold as an escape, has no UTF-8.
    data = b"data: " + json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n\n"
    return data if name is None else b"event: " + name.encode() + b"\n" + data
