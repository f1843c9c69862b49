"""An agent's endpoint: one request, done by the agent at most once."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import httpx

from passgate.tasks.errors import MeasurementError
from passgate.tasks.providers.breaker import Breaker
from passgate.tasks.providers.retry_policy import RetryPolicy, retry_after

MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
_PATIENCE: Final = RetryPolicy()
_DECLINED: Final = frozenset({429, 503})
_PLAIN: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}


class TooLargeError(Exception):
    """A reply that is larger than passgate reads."""


@dataclass(frozen=True)
class Reply:
    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Endpoint:
    """Sends JSON and gives the reply.

    Whoever asks an agent twice may make it act twice. So a request is sent again only when it was surely not taken on:
    no connection came about, or the endpoint declined it with 429 or 503 and a Retry-After.
    """

    def __init__(self, method: str, url: str, *, silence_seconds: float, retry_policy: RetryPolicy = _PATIENCE) -> None:
        self.url = url
        self._method = method
        self._silence = silence_seconds
        self._patience = retry_policy
        self._breaker = Breaker(retry_policy)
        self._tls = httpx.create_ssl_context()  # 25 ms, so once for all requests

    async def ask(self, content: bytes, headers: Mapping[str, str], *, seconds: float) -> Reply:
        """The reply to one request, in at most `seconds`.

        Raises `TimeoutError` when the agent took longer or was silent for too long, `TooLargeError`, and
        `MeasurementError` when it could not be reached or the connection broke.
        """
        deadline = time.monotonic() + seconds
        for attempt in range(1, self._patience.attempts + 1):
            if not self._breaker.admits():
                raise MeasurementError(f"the agent at {self.url} is not asked: {self._breaker.reason}", transient=True)
            outcome = await self._once(content, headers, seconds=deadline - time.monotonic())
            pause = self._pause(outcome, attempt)
            if pause is None or time.monotonic() + pause >= deadline:
                break
            await asyncio.sleep(pause)
        if isinstance(outcome, Reply):
            return outcome
        raise MeasurementError(f"the agent at {self.url} cannot be reached: {outcome!r}", transient=True) from outcome

    async def _once(
        self, content: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> Reply | httpx.TransportError:
        """The reply, or why no connection came about."""
        try:
            async with asyncio.timeout(seconds):
                # A connection that takes half of the time is not the agent's slowness.
                reply = await self._exchange(content, headers, min(self._patience.connect_seconds, seconds / 2))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._breaker.failed(repr(error))
            return error
        except httpx.ReadTimeout as error:
            raise TimeoutError(f"{self.url} was silent for {self._silence:g} s") from error
        except TimeoutError as error:
            raise TimeoutError(f"{self.url} gave no answer in time") from error
        except httpx.HTTPError as error:
            self._breaker.failed(repr(error))
            raise MeasurementError(f"the connection to {self.url} broke: {error!r}", transient=True) from error
        self._breaker.succeeded()
        return reply

    async def _exchange(self, content: bytes, headers: Mapping[str, str], connect_seconds: float) -> Reply:
        limits = httpx.Timeout(self._silence, connect=connect_seconds)
        async with (
            httpx.AsyncClient(verify=self._tls, timeout=limits, headers=_PLAIN) as client,
            client.stream(self._method, self.url, content=content, headers=headers) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise TooLargeError(f"the reply is larger than {MAX_REPLY_BYTES // 1024 // 1024} MiB")
            return Reply(response.status_code, bytes(body), dict(response.headers))

    def _pause(self, outcome: Reply | httpx.TransportError, attempt: int) -> float | None:
        """Seconds until the request may be sent again; `None` when it may not."""
        if attempt == self._patience.attempts:
            return None
        pause = self._patience.pause(attempt, random.random())  # noqa: S311 - no secret
        if isinstance(outcome, httpx.TransportError):
            return pause
        asked = retry_after(outcome.headers, datetime.now(UTC)) if outcome.status in _DECLINED else None
        if asked is None or asked > self._patience.longest_retry_after:
            return None
        return max(pause, asked)
