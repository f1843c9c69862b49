"""How long a provider is waited for, in numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_MOST_DOUBLINGS: Final = 60


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again, when to give up a call and when to give up a provider. Times are seconds."""

    attempts: int = 5
    """Of one call, the first included."""
    first_pause: float = 0.5
    """After the first attempt; it doubles with every further one."""
    longest_pause: float = 8.0
    longest_retry_after: float = 60.0
    """A provider that asks for a longer pause is given up at once."""
    connect_seconds: float = 10.0
    """The longest that a connection may take to come about."""
    failures_until_open: int = 6
    """Failures in a row, over all calls, after which the provider counts as dead."""
    failing_seconds: float = 3.0
    """How long that row must have lasted: a moment in which all connections break is not yet a dead provider."""
    probe_every: float = 5.0
    """How often a dead provider is asked again, by one call."""

    def pause(self, attempt: int, chance: float) -> float:
        """Seconds to wait after an attempt, counted from 1: from half of the doubled pause on; `chance` is 0 to 1."""
        whole = min(self.first_pause * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), self.longest_pause)
        return whole * (1 + chance) / 2


RETRY_POLICY: Final = RetryPolicy()
"""The one that holds where nothing else is said."""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that a reply asks to wait; `None` when it does not say, or not in a way that can be read.

    `retry-after-ms` goes before `Retry-After` (RFC 9110, section 10.2.3), a date is held against the reply's own
    `Date` where it has one.
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
