"""Whether a provider's endpoint is there, found out with one question that costs nothing."""

from dataclasses import dataclass
from typing import Final, Literal

from passgate.tasks.providers.client import Upstream, UpstreamError
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.retry_policy import RetryPolicy

Provider = Literal["openai", "anthropic"]
_REFUSALS: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
LISTS: Final = {"openai": "models", "anthropic": "v1/models"}
"""Where an endpoint lists its models, below the base URL."""
_HEADERS: Final[dict[Provider, dict[str, str]]] = {"openai": {}, "anthropic": {"anthropic-version": "2023-06-01"}}


@dataclass(frozen=True)
class Probe:
    """What came of it."""

    asked: str
    """The address that was asked."""
    status: int | None
    """Of the answer; `None` when there was none that is of use."""
    trouble: str = ""
    """Why there was none."""

    @property
    def is_refused(self) -> bool:
        """Whether the endpoint is there and does not let us in."""
        return self.status in _REFUSALS

    @property
    def is_not_found(self) -> bool:
        """Whether there is a server, and nothing at this address."""
        return self.status == _NOT_FOUND


async def probe(provider: Provider, endpoint: ResolvedEndpoint, *, seconds: float) -> Probe:
    """Ask an endpoint for its list of models, once and for at most `seconds`."""
    path = LISTS[provider]
    asked = f"{endpoint.base_url}/{path}"
    try:
        async with Upstream(endpoint, timeout_seconds=seconds, retry_policy=RetryPolicy(attempts=1)) as upstream:
            answer = await upstream.get(path, _HEADERS[provider], seconds=seconds)
    except UpstreamError as error:
        return Probe(asked, None, str(error))
    return Probe(asked, answer.status)
