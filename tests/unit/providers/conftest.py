"""A scripted provider, and calls of it that are made again after milliseconds."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from passgate.tasks.providers.client import Upstream
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.retries import Breaker, RetryPolicy
from tests.upstream import ScriptedUpstream

QUICK = RetryPolicy(
    first_pause=0.01, longest_pause=0.05, longest_retry_after=2, connect_seconds=math.inf, failing_seconds=math.inf
)
"""The breaker never opens by it."""


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def provider() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as scripted:
        yield scripted


@pytest.fixture
async def connect(
    provider: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Upstream]]:
    """Makes clients of the provider or of another address, which are closed when the test is over. Their breaker has
    the event loop's clock."""
    made: list[Upstream] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr("passgate.tasks.providers.client.Breaker", lambda policy: Breaker(policy, lambda: loop.time()))

    def _connect(
        url: str = provider.openai_base_url, *, key: str = "", silence: float = 300, retry_policy: RetryPolicy = QUICK
    ) -> Upstream:
        upstream = Upstream(ResolvedEndpoint(url, key, "THE_KEY"), timeout_seconds=silence, retry_policy=retry_policy)
        made.append(upstream)
        return upstream

    yield _connect
    for upstream in made:
        await upstream.close()
