"""Retry reports to a Prefect server that is in trouble."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from passgate.tasks.errors import UsageError

T = TypeVar("T")

_VARIABLE: Final = "PASSGATE_PREFECT_SECONDS"
_DEFAULT = 60.0
_PAUSE = 1.0


def seconds_to_report() -> float:
    """Return how many seconds Prefect may take to accept a verdict. Raise `UsageError`."""
    given = os.environ.get(_VARIABLE)
    try:
        return _DEFAULT if not given else max(0.0, float(given))
    except ValueError as error:
        raise UsageError(f"{_VARIABLE} is not a number: {given}") from error


async def retry(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until it succeeds, as when the server restarts or has its database locked. Return its result.

    Use it within `asyncio.timeout`, because it has no limit of its own.
    """
    while True:
        try:
            return await call()
        except Exception:  # noqa: BLE001 - whatever it is, the caller's limit ends it
            await asyncio.sleep(_PAUSE)
