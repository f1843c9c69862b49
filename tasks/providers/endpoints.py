"""Where a provider's calls go and which key they carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import httpx

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import Endpoint, Upstreams

Provider = Literal["openai", "anthropic"]
KeyHeader = Literal["authorization", "x-api-key"]


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """What is known of a provider beforehand."""

    url: str  # Its own base URL, which takes no call without a key
    key_header: KeyHeader
    models: str  # Where its endpoints list their models, below the base URL
    headers: tuple[tuple[str, str], ...] = ()  # What every request has to say


PROVIDERS: Final[dict[str, KnownProvider]] = {
    "openai": KnownProvider("https://api.openai.com/v1", "authorization", "models"),
    "anthropic": KnownProvider(
        "https://api.anthropic.com", "x-api-key", "v1/models", (("anthropic-version", "2023-06-01"),)
    ),
}


@dataclass(frozen=True, slots=True)
class ResolvedEndpoint:
    """One endpoint of a provider, resolved. Raises `UsageError` for what is no usable address or key."""

    base_url: str  # `http` or `https`, host, port and path, without a slash at the end
    key: str = field(default="", repr=False)  # Empty when none is configured; then the caller's own goes out
    key_variable: str = ""  # The environment variable that holds the key, for messages
    key_header: KeyHeader = "authorization"
    """The header that the key is sent in: `authorization` as `Bearer KEY`, or `x-api-key`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        object.__setattr__(self, "key", self.key.strip())
        _refuse_url(self.base_url)
        if not (self.key.isascii() and self.key.isprintable()):
            raise UsageError(f"the value of {self.key_variable or 'a key'} holds characters that no key has")

    @property
    def url(self) -> httpx.URL:
        return httpx.URL(self.base_url)

    @property
    def key_headers(self) -> dict[str, str]:
        """The header with the key; none without a key."""
        if not self.key:
            return {}
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "authorization" else self.key}


def resolve_endpoint(provider: str, endpoint: Endpoint, environment: Mapping[str, str]) -> ResolvedEndpoint:
    """Return where a provider's APIs are: as the endpoint says, else OPENAI_BASE_URL and OPENAI_API_KEY or
    ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, else the provider itself. Raises `UsageError`.
    """
    known, prefix = PROVIDERS[provider], provider.upper()
    base_url = endpoint.base_url or environment.get(f"{prefix}_BASE_URL") or known.url
    variable = endpoint.api_key_variable or f"{prefix}_API_KEY"
    return ResolvedEndpoint(base_url, environment.get(variable, ""), variable, known.key_header)


def resolve_endpoints(upstreams: Upstreams, environment: Mapping[str, str]) -> dict[str, ResolvedEndpoint]:
    """Return where the calls of each provider's API go. Raises `UsageError`."""
    return {
        "openai": resolve_endpoint("openai", upstreams.openai, environment),
        "anthropic": resolve_endpoint("anthropic", upstreams.anthropic, environment),
    }


def _refuse_url(text: str) -> None:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise UsageError(f"the base URL {text!r} is not a URL: {error}") from error
    # A password in an address would be recorded with it.
    if url.userinfo:
        raise UsageError(f"the base URL of {url.host} holds a user or password: put the key into a variable")
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise UsageError(f"the base URL {text!r} is not of the form https://host/path")
