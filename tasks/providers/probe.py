"""Whether a provider's endpoint is there, found out before a run with questions that cost nothing."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx

from passgate.tasks.files.proxies import is_loopback, via_proxy
from passgate.tasks.model.quotes import UNMASKED
from passgate.tasks.providers.client import Upstream, UpstreamError
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.registry import Provider
from passgate.tasks.providers.retries import RetryPolicy

CONNECT_SECONDS: Final = 5.0
PAUSES: Final = (1.0, 2.0)
"""Seconds between the attempts: a provider may be starting, and a name server may have a bad moment."""


@dataclass(frozen=True)
class Probe:
    """What came of it."""

    asked: str  # The address that was asked
    status: int | None  # Of the answer; `None` when there was none that is of use
    trouble: str = ""  # Why there was none


async def probe(provider: Provider, endpoint: ResolvedEndpoint, *, seconds: float) -> Probe:
    """Ask an endpoint for its list of models, once and for at most `seconds`."""
    asked = f"{endpoint.base_url}/{provider.models}"
    try:
        async with Upstream(endpoint, timeout_seconds=seconds, retry_policy=RetryPolicy(attempts=1)) as upstream:
            answer = await upstream.get(provider.models, provider.headers, seconds=seconds)
    except UpstreamError as error:
        return Probe(asked, None, UNMASKED.render(error.message))
    return Probe(asked, answer.status)


class NoConnectionError(Exception):
    """No connection came about; the text says why."""


def reach(address: str, headers: Mapping[str, str]) -> int | None:
    """Return the status of the answer to a GET; `None` if there is a connection and no answer that is of use. It takes
    at most about 20 seconds. Raises `NoConnectionError`.
    """
    reason = ""
    for pause in (0.0, *PAUSES):
        if pause:
            time.sleep(pause)
        try:
            is_direct = is_loopback(urlsplit(address).hostname or "")
            with (
                httpx.Client(timeout=CONNECT_SECONDS, trust_env=not is_direct) as client,
                client.stream("GET", address, headers=dict(headers)) as answer,
            ):
                return answer.status_code
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            reason = f"{str(error) or type(error).__name__}{via_proxy(address)}"
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
    raise NoConnectionError(reason)
