"""A circuit breaker: when a provider fails again and again, nobody waits for it any longer."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from passgate.tasks.providers.retry_policy import RetryPolicy


class Breaker:
    """Counts the failures in a row of one provider, over all calls.

    It opens when there are `failures_until_open` of them and the row has lasted `failing_seconds`. While it is open
    one call is let through every `probe_every` seconds; the first success closes it.
    """

    def __init__(self, retry_policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = retry_policy
        self._clock = clock
        self._failures = 0
        self._failing_since = 0.0
        self._next_probe = 0.0
        self._last = ""
        self._opened = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def admits(self) -> bool:
        """Whether a call may go out now. Of an open breaker: whether this call is the next probe."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + self._policy.probe_every
        return True

    def succeeded(self) -> None:
        """The provider answered."""
        self._failures = 0
        self._opened.clear()

    def failed(self, what: str, silence: float = 0.0) -> bool:
        """The provider did not answer, or with nothing usable; whether this opens the breaker.

        `silence` is how many seconds it had said nothing before: so long it has been failing already.
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
        """Wait, but not on when the breaker opens; whether it is open."""
        try:
            async with asyncio.timeout(seconds):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    @property
    def reason(self) -> str:
        """Since when and why it is open."""
        lasting = timedelta(seconds=self._clock() - self._failing_since)
        since = datetime.now(UTC) - lasting
        return (
            f"the circuit breaker is open: {self._failures} failures in a row since {since:%H:%M:%S} UTC, "
            f"the last one: {self._last}; one call tries again every {self._policy.probe_every:g} s"
        )
