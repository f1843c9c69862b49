"""One call of a provider on its way through all of its attempts, and the headers that go out and come back with it."""

import asyncio
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import httpcore

from passgate.tasks.errors import Raw
from passgate.tasks.files.proxies import via_proxy
from passgate.tasks.model.quotes import raw
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.registry import KEY_HEADERS

_SAFE_IN_PATHS: Final = "/?&=%:@!$'()*+,;~-._"
RawHeaders = Sequence[tuple[bytes, bytes]]

# RFC 9110, section 7.6.1, and what every connection has of its own.
_OF_ONE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_SENT_ON: Final = _OF_ONE_CONNECTION | {"host", "accept-encoding", "cookie"}
# What proxies add, and what some servers take in place of the request's own host, path or method.
_OF_PROXIES: Final = re.compile(
    r"forwarded|via|max-forwards|http2-settings|(true|cf)-(client|connecting)-ip"
    r"|x-(forwarded|original|rewrite|real|cluster|client|envoy|proxy|host|http-host|http-method|method)(-.*)?"
)
_NOT_SENT_BACK: Final = _OF_ONE_CONNECTION | {"set-cookie"}
_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9a-z]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SECRET_NAME: Final = re.compile(r"auth|key|token|secret")
_SHORTEST_SECRET: Final = 6
_MASK: Final = "***"


class Stage(StrEnum):
    """What a call is waiting for."""

    TURN = "its turn"
    ANSWER = "an answer"
    REST = "the rest of the answer"
    REFUSAL = "the rest of a refusal"
    PAUSE = "the next attempt"


@dataclass(slots=True)
class CallProgress:
    """How far one call has come. The client writes it; those who wait for the call may read it at any time."""

    attempts: int = 0
    asked_at: float | None = None  # When the last attempt had its turn, by `time.monotonic()`
    stage: Stage = Stage.TURN
    last_fault: Raw = ""  # What the last failed attempt came to; empty while none has failed
    url: str = ""  # For messages: without its query

    @property
    def is_healthy(self) -> bool:
        """Whether the provider answers, or has been asked once and may still answer."""
        return self.stage is Stage.REST or (self.stage is Stage.ANSWER and not self.last_fault)

    def message(self, what: Raw) -> Raw:
        """Return a message that says which provider is unavailable, why, and how often it was asked."""
        attempts = f"{self.attempts} attempt{'' if self.attempts == 1 else 's'}"
        return raw(f"the provider at {self.url}{via_proxy(self.url)} is unavailable: ", what, f" ({attempts})")

    def message_at(self, moment: str) -> Raw:
        """Return the message of a call that was still waiting at some moment, as in `2 s were over`."""
        before = raw("; before, ", self.last_fault) if self.last_fault else ""
        return self.message(raw(f"{moment} while waiting for {self.stage}", before))


@dataclass(slots=True)
class ProviderCall:
    """What is asked and how long it may take."""

    request: httpcore.Request
    age: int  # Lower than that of every later call
    seconds: float | None  # For all attempts together; `None` while the retry policy alone limits them
    deadline: float | None  # On the event loop's clock
    progress: CallProgress = field(default_factory=CallProgress)

    @property
    def seconds_left(self) -> float:
        """Until the deadline; infinite without one."""
        return math.inf if self.deadline is None else self.deadline - asyncio.get_running_loop().time()


class Calls:
    """Makes the calls of one endpoint; what is the same for all of them is made once."""

    def __init__(self, endpoint: ResolvedEndpoint, *, connect_seconds: float, silence: float) -> None:
        self._endpoint = endpoint
        url = endpoint.url
        self._scheme, self._host, self._port = url.raw_scheme, url.raw_host, url.port
        self._base_path = url.raw_path.rstrip(b"/")
        self._fixed = [
            (b"host", url.netloc),
            (b"accept-encoding", b"identity"),
            *((name.encode("ascii"), value.encode("ascii")) for name, value in endpoint.key_headers.items()),
        ]
        self._timeouts = {"timeout": {"connect": min(connect_seconds, silence), "read": silence, "write": silence}}
        self._ages = itertools.count()

    def new(
        self,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float | None,
        progress: CallProgress | None = None,
    ) -> ProviderCall:
        """Return a POST of a path below the base URL, its query included; without a body a GET.

        `headers` are those of the caller.
        """
        path = path.lstrip("/")
        target = self._base_path + b"/" + quote(path, safe=_SAFE_IN_PATHS).encode("ascii")
        length = None if body is None else len(body)
        request = httpcore.Request(
            "GET" if body is None else "POST",
            httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
            headers=headers_out(self._fixed, headers, length=length, has_key=bool(self._endpoint.key)),
            content=body,
            extensions=self._timeouts,
        )
        url = f"{self._endpoint.base_url}/{path.partition('?')[0]}"
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        progress = progress or CallProgress()
        progress.url = url
        return ProviderCall(request, next(self._ages), seconds, deadline, progress)


def headers_out(
    fixed: RawHeaders, passed: Mapping[str, str], *, length: int | None, has_key: bool
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request: the endpoint's own, then those of the caller that may go on.

    A configured key replaces the caller's. `length` is that of the body, `None` without one.
    """
    given = {name.lower(): value.strip() for name, value in passed.items()}
    own = {name.strip().lower() for name in given.get("connection", "").split(",")}
    dropped = own | _NOT_SENT_ON | (KEY_HEADERS if has_key else frozenset())
    headers = [
        *fixed,
        *(
            (name.encode("ascii"), value.encode("latin-1"))
            for name, value in given.items()
            if name not in dropped
            and _NAME.fullmatch(name)
            and not _OF_PROXIES.fullmatch(name)
            and _VALUE.fullmatch(value)
        ),
    ]
    if length is not None:
        headers.append((b"content-length", b"%d" % length))
        if "content-type" not in given:
            headers.append((b"content-type", b"application/json"))
    return headers


def headers_back(raw: RawHeaders) -> dict[str, str]:
    """Return the headers of an answer by lower-case name, without cookies and those of one connection only."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in _NOT_SENT_BACK:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def mask_secrets(text: str, sent: Iterable[tuple[bytes, bytes]]) -> str:
    """Mask the keys that a request carried in a text."""
    for name, value in sent:
        if _SECRET_NAME.search(name.decode("ascii")):
            secret = value.decode("latin-1").removeprefix("Bearer ").strip()
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, _MASK)
    return text


def mask_body(body: bytes, sent: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Mask the keys that a request carried in a body."""
    return mask_secrets(body.decode("latin-1"), sent).encode("latin-1")
