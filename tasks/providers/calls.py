"""One call of a provider on its way through all of its attempts."""

import asyncio
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import httpcore

from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.headers import headers_out

_SAFE_IN_PATHS: Final = "/?&=%:@!$'()*+,;~-._"


class Stage(StrEnum):
    """What a call is waiting for."""

    TURN = "its turn"
    ANSWER = "an answer"
    REST = "the rest of the answer"
    REFUSAL = "the rest of a refusal"
    PAUSE = "the next attempt"


@dataclass(slots=True)
class CallProgress:
    """How far one call has come. The client writes it; whoever waits for the call may read it at any time."""

    attempts: int = 0
    stage: Stage = Stage.TURN
    last_fault: str = ""
    """What the last failed attempt came to; empty while none has failed."""
    url: str = ""
    """For messages: without its query."""

    @property
    def is_healthy(self) -> bool:
        """Whether the provider answers, or has been asked once and may still answer."""
        return self.stage is Stage.REST or (self.stage is Stage.ANSWER and not self.last_fault)

    def in_words(self, what: str) -> str:
        """A message that says which provider cannot be had, why, and how often it was asked."""
        attempts = f"{self.attempts} attempt{'' if self.attempts == 1 else 's'}"
        return f"the provider at {self.url} cannot be had: {what} ({attempts})"

    def in_words_at(self, moment: str) -> str:
        """As `in_words`, of a call that was still waiting at some moment, as in `2 s were over`."""
        before = f"; before, {self.last_fault}" if self.last_fault else ""
        return self.in_words(f"{moment} while it was waited for {self.stage}{before}")


@dataclass(slots=True)
class ProviderCall:
    """What is asked and how long it may take."""

    request: httpcore.Request
    age: int
    """Lower than that of every later call."""
    seconds: float | None
    """For all attempts together; `None` while the provider's patience alone limits them."""
    deadline: float | None
    """On the event loop's clock."""
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
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float | None,
        progress: CallProgress | None = None,
    ) -> ProviderCall:
        """A call of a path below the base URL, its query included; `headers` are those of whoever asks for it."""
        path = path.lstrip("/")
        target = self._base_path + b"/" + quote(path, safe=_SAFE_IN_PATHS).encode("ascii")
        length = None if body is None else len(body)
        request = httpcore.Request(
            method,
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
