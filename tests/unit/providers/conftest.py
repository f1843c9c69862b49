"""A scripted provider and calls of it that are patient for milliseconds only."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from passgate.tasks.providers.client import Upstream
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.retries import RetryPolicy
from tests.upstream import ScriptedUpstream

QUICK = RetryPolicy(first_pause=0.01, longest_pause=0.05, longest_retry_after=2, failing_seconds=60, probe_every=0.1)
"""The breaker never opens by it: a row of failures would have to last a minute."""


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
async def connect(provider: ScriptedUpstream) -> AsyncIterator[Callable[..., Upstream]]:
    """Makes clients of the provider or of another address, which are closed when the test is over."""
    made: list[Upstream] = []

    def _connect(
        url: str = provider.openai_base_url, *, key: str = "", silence: float = 5, retry_policy: RetryPolicy = QUICK
    ) -> Upstream:
        upstream = Upstream(ResolvedEndpoint(url, key, "THE_KEY"), timeout_seconds=silence, retry_policy=retry_policy)
        made.append(upstream)
        return upstream

    yield _connect
    for upstream in made:
        await upstream.close()
