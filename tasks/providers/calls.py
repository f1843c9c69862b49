"""One call of a provider on its way through all of its attempts."""

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpcore

from passgate.tasks.providers.endpoints import Target
from passgate.tasks.providers.headers import headers_out

_SAFE_IN_PATHS: Final = "/?&=%:@!$'()*+,;~-._"


@dataclass(slots=True)
class Call:
    """What is asked, how long it may take and how far it has come."""

    request: httpcore.Request
    url: str
    """For messages: without its query."""
    age: int
    """Lower than that of every later call."""
    seconds: float
    """For all attempts together."""
    deadline: float
    """On the event loop's clock."""
    attempts: int = 0
    waits_for: str = "its turn"
    last: str = ""
    """What the last attempt came to."""


class Calls:
    """Makes the calls of one endpoint; what is the same for all of them is made once."""

    def __init__(self, target: Target, *, connect_seconds: float, silence: float) -> None:
        self._target = target
        url = target.url
        self._scheme, self._host, self._port = url.raw_scheme, url.raw_host, url.port
        self._base_path = url.raw_path.rstrip(b"/")
        self._fixed = [
            (b"host", url.netloc),
            (b"accept-encoding", b"identity"),
            *((name.encode("ascii"), value.encode("ascii")) for name, value in target.key_headers.items()),
        ]
        self._timeouts = {"timeout": {"connect": min(connect_seconds, silence), "read": silence, "write": silence}}
        self._ages = itertools.count()

    def new(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], seconds: float) -> Call:
        """A call of a path below the base URL, its query included; `headers` are those of whoever asks for it."""
        path = path.lstrip("/")
        target = self._base_path + b"/" + quote(path, safe=_SAFE_IN_PATHS).encode("ascii")
        length = None if body is None else len(body)
        request = httpcore.Request(
            method,
            httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
            headers=headers_out(self._fixed, headers, length=length, has_key=bool(self._target.key)),
            content=body,
            extensions=self._timeouts,
        )
        url = f"{self._target.base_url}/{path.partition('?')[0]}"
        return Call(request, url, next(self._ages), seconds, asyncio.get_running_loop().time() + seconds)
