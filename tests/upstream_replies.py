"""What the scripted provider can be told to answer: a reply of the model, or a fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.upstream_shapes import Json, Says

SOMETHING = Says("All is well, and that is all there is to say.")


@dataclass(frozen=True)
class Down:
    """The connection is closed before an answer."""


@dataclass(frozen=True)
class Silent:
    """Nothing is said for this long, then `says`."""

    seconds: float
    says: Says = SOMETHING


@dataclass(frozen=True)
class Slow:
    """A pause before every event of a stream, or before every few bytes of a body."""

    chunk_pause: float
    says: Says = SOMETHING


@dataclass(frozen=True)
class ResetMidStream:
    """The connection is reset after so many events; a reply without streaming is reset in its middle."""

    after_events: int
    says: Says = SOMETHING


@dataclass(frozen=True)
class CutShort:
    """The HTTP answer of a stream ends properly after so many events, without the end of the reply; a reply without
    streaming is reset in its middle."""

    after_events: int
    says: Says = SOMETHING


@dataclass(frozen=True)
class ResetMidBody:
    """The connection is reset in the middle of the bytes of a reply, streamed or not."""

    says: Says = SOMETHING


@dataclass(frozen=True)
class Status:
    """An error, by default worded as the providers do; `body` is JSON or bytes."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | bytes | None = None


@dataclass(frozen=True)
class MalformedJson:
    """Something that is no JSON, as the body or as the second event."""


@dataclass(frozen=True)
class WrongContentType:
    """An HTML page with status 200."""


Reply = (
    Says | Down | Silent | Slow | ResetMidStream | CutShort | ResetMidBody | Status | MalformedJson | WrongContentType
)
