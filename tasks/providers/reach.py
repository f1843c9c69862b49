"""Whether a connection to an address comes about, asked before a run: a few times, for a bounded time."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

CONNECT_SECONDS: Final = 5.0
PAUSES: Final = (1.0, 2.0)
"""Seconds between the attempts: a provider may be starting, and a name server may have a bad moment."""


@dataclass(frozen=True)
class Reached:
    """What came of it."""

    status: int | None
    """Of the answer; `None` when a connection came about and no answer that is of use."""


@dataclass(frozen=True)
class Unreachable:
    """No connection came about."""

    reason: str


def reach(address: str, headers: Mapping[str, str], *, uses_proxies: bool = True) -> Reached | Unreachable:
    """Ask an address with a GET whose answer does not matter. It takes at most about 20 seconds."""
    for pause in PAUSES:
        outcome = _once(address, headers, uses_proxies=uses_proxies)
        if isinstance(outcome, Reached):
            return outcome
        time.sleep(pause)
    return _once(address, headers, uses_proxies=uses_proxies)


def _once(address: str, headers: Mapping[str, str], *, uses_proxies: bool) -> Reached | Unreachable:
    try:
        with (
            httpx.Client(timeout=CONNECT_SECONDS, trust_env=uses_proxies) as client,
            client.stream("GET", address, headers=dict(headers)) as answer,
        ):
            return Reached(answer.status_code)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        return Unreachable(str(error) or type(error).__name__)
    except (httpx.HTTPError, httpx.InvalidURL):
        return Reached(None)
