"""How long a verdict waits for a server of Prefect that is in trouble."""

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
    """The most seconds after a verdict in which Prefect may take it. Raises `UsageError`."""
    given = os.environ.get(_VARIABLE)
    try:
        return _DEFAULT if not given else max(0.0, float(given))
    except ValueError as error:
        raise UsageError(f"{_VARIABLE} is not a number: {given}") from error


async def until_accepted(call: Callable[[], Awaitable[T]]) -> T:
    """What a call gives once it succeeds: a server that restarts or has its database locked is asked again.

    There is no limit of its own: use it within `asyncio.timeout`.
    """
    while True:
        try:
            return await call()
        except Exception:  # noqa: BLE001 - whatever it is, the caller's limit ends it
            await asyncio.sleep(_PAUSE)
