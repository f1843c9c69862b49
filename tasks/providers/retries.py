"""When a provider is asked again, when a call is given up, and when a circuit breaker gives up the provider."""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from passgate.tasks.errors import Raw
from passgate.tasks.model.quotes import raw
from passgate.tasks.providers.refusals import Refusal

TRY_AGAIN: Final = frozenset({408, 425, 429})  # Beside 5xx: statuses that may be gone at the next attempt
TOO_MANY: Final = 429
OVERLOADED: Final = frozenset({TOO_MANY, 503, 529})
READ_ENCODINGS: Final = frozenset({"identity", "gzip", "x-gzip", "deflate"})
"""None is asked for, but some gateways pack every answer."""
_NEVER_BETTER: Final = frozenset({501, 505})
_SERVER_ERROR: Final = 500
_SUCCESS: Final = range(200, 300)
_CLIENT_ERROR: Final = 400
_EXCERPT: Final = 16_000  # Bytes of an answer; messages are cut later, when secrets are masked in them
_RETRY_DELAY: Final = re.compile(rb'"retryDelay":\s*"(\d{1,6}(?:\.\d{1,9})?)s"')  # Where Gemini says it
_MOST_DOUBLINGS: Final = 60  # More would leave the range of a float


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again, when to give up a call and when to give up a provider. Times are seconds."""

    attempts: int = 5  # Of one call, the first included
    first_pause: float = 0.5  # After the first attempt; it doubles with every further one
    longest_pause: float = 8.0
    longest_retry_after: float = 60.0  # A provider that asks for a longer pause is given up at once
    connect_seconds: float = 10.0  # The longest that a connection may take to come about
    failures_until_open: int = 6  # Failures in a row, over all calls, after which the provider counts as dead
    failing_seconds: float = 3.0
    """How long that row must have lasted: a moment in which all connections break is not yet a dead provider."""
    probe_every: float = 5.0  # How often a dead provider is asked again, by one call

    def pause(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after an attempt, counted from 1: at least half of the doubled pause. `chance` is
        0 to 1.
        """
        whole = min(self.first_pause * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), self.longest_pause)
        return whole * (1 + chance) / 2


RETRY_POLICY: Final = RetryPolicy()  # The one that holds where nothing else is said


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a reply asks to wait; `None` if it does not say, or not readably.

    `retry-after-ms` goes before `Retry-After` (RFC 9110, section 10.2.3); a date is compared with the reply's own
    `Date` if it has one.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    until = _moment(text)
    return None if until is None else max(0.0, (until - (_moment(headers.get("date", "")) or now)).total_seconds())


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class AttemptError(Exception):
    """A failed attempt; the text says what the provider did."""

    def __init__(
        self,
        what: str,
        *,
        silence: float = 0.0,
        status: int | None = None,
        asked_pause: float | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(what)
        self.silence = silence  # Seconds in which the provider said nothing
        self.status = status
        self.asked_pause = asked_pause  # Seconds that the provider asks to wait
        self.final = final  # Whether another attempt would come to the same
        self.alive = status in TRY_AGAIN
        """Whether it does not speak against the provider: one that limits its callers is not down."""

    @property
    def overload(self) -> bool:
        """Whether the provider has too many calls."""
        return self.status in OVERLOADED and not self.final


def check_refusal(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise `AttemptError` for an answer whose status may be gone at the next attempt."""
    if status in TRY_AGAIN or (status >= _SERVER_ERROR and status not in _NEVER_BETTER):
        pause = retry_after(headers, datetime.now(UTC))
        if pause is None and (delay := _RETRY_DELAY.search(body)):
            pause = float(delay[1])
        final = status == TOO_MANY and Refusal.from_reply(status, body).lacks_money
        raise AttemptError(f"it answered {status}{_excerpt(body)}", status=status, asked_pause=pause, final=final)


def check_head(status: int, headers: Mapping[str, str], media_type: str) -> None:
    """Raise `AttemptError` for a redirection, and for a success whose content is not what was asked for."""
    if status >= _CLIENT_ERROR:
        return
    if status not in _SUCCESS:
        raise AttemptError(f"it answered {status}, and redirections are not followed: check the base URL", final=True)
    if headers.get("content-encoding", "identity").lower() not in READ_ENCODINGS:
        encoding = headers["content-encoding"]
        raise AttemptError(f"it answered in the encoding {encoding!r}, which was not asked for", final=True)
    content_type = headers.get("content-type", "")
    if media_type not in content_type.lower():
        raise AttemptError(f"it answered {status} with the content type {content_type!r}, which is not {media_type}")


def parse_reply(status: int, body: bytes) -> Any:
    """Return the JSON document of an answer; `None` if an error has none.

    Raises `AttemptError` if a success has no JSON object.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if status < _CLIENT_ERROR and not isinstance(document, dict):
        raise AttemptError(f"it answered {status} without a JSON object{_excerpt(body)}")
    return document


def _excerpt(body: bytes) -> str:
    words = " ".join(body[:_EXCERPT].decode("utf-8", "replace").split())
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words)
    return f": {text}" if text else ""


class Breaker:
    """A circuit breaker: when a provider fails again and again, nobody waits for it any longer.

    Counts the failures in a row of one provider, over all calls.

    It opens when there are `failures_until_open` of them and the row has lasted `failing_seconds`. While it is open
    one call is let through every `probe_every` seconds; the first success closes it.
    """

    def __init__(self, retry_policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = retry_policy
        self._clock = clock
        self._failures = 0
        self._failing_since = 0.0
        self._next_probe = 0.0
        self._last: Raw = ""
        self._opened = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def admits(self) -> bool:
        """Return whether a call may go out now. Of an open breaker: whether this call is the next probe."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + self._policy.probe_every
        return True

    def record_success(self) -> None:
        """Record that the provider answered."""
        self._failures = 0
        self._opened.clear()

    def record_failure(self, what: Raw, silence: float = 0.0) -> bool:
        """Record that the provider did not answer, or not usably. Return whether this opens the breaker.

        `silence` is for how many seconds it had said nothing before: so long it has been failing already.
        """
        now = self._clock()
        if not self._failures:
            self._failing_since = now - silence
        self._failures += 1
        self._last = what
        lasted = now - self._failing_since >= self._policy.failing_seconds
        if self.is_open or self._failures < self._policy.failures_until_open or not lasted:
            return False
        self._next_probe = now + self._policy.probe_every
        self._opened.set()
        return True

    async def opens_within(self, seconds: float) -> bool:
        """Wait, but no longer than until the breaker opens. Return whether it is open."""
        try:
            async with asyncio.timeout(seconds):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    @property
    def reason(self) -> Raw:
        """Since when and why it is open."""
        lasting = timedelta(seconds=self._clock() - self._failing_since)
        since = datetime.now(UTC) - lasting
        return raw(
            f"the circuit breaker is open: {self._failures} failures in a row since {since:%H:%M:%S} UTC, ",
            "the last one: ",
            self._last,
            f"; one call tries again every {self._policy.probe_every:g} s",
        )
