"""Where a provider's calls go and which key they carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import Endpoint
from passgate.tasks.providers.registry import PROVIDERS, Provider, known_providers


@dataclass(frozen=True, slots=True)
class ResolvedEndpoint:
    """One endpoint of a provider, resolved. Raises `UsageError` for what is no usable address or key."""

    base_url: str  # `http` or `https`, host, port and path, without a slash at the end
    key: str = field(default="", repr=False)  # Empty when none is configured; then the caller's own goes out
    key_variable: str = ""  # The environment variable that holds the key, for messages
    key_header: str = "authorization"  # The header that the key is sent in; `authorization` holds `Bearer KEY`

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


def resolve_endpoint(provider: Provider, endpoint: Endpoint, environment: Mapping[str, str]) -> ResolvedEndpoint:
    """Return where a provider's APIs are: as the endpoint says, else its usual variables, else the provider itself.
    Raises `UsageError`, also if none of them says it.
    """
    address = provider.base_url_variables[0]
    base_url = endpoint.base_url or environment.get(address) or provider.url
    variable = endpoint.api_key_variable or provider.key_source(environment)
    if not base_url:
        raise UsageError(f"{address} is not set, and upstreams.{provider.name} has no base_url: set one of them")
    header = provider.other_keys.get(variable, provider.key_header)
    return ResolvedEndpoint(base_url, environment.get(variable, ""), variable, header)


def resolve_endpoints(upstreams: Mapping[str, Endpoint], environment: Mapping[str, str]) -> dict[str, ResolvedEndpoint]:
    """Return where the calls of each provider's API go, if any address of it is known. Raises `UsageError`."""
    return {
        name: resolve_endpoint(PROVIDERS[name], upstreams.get(name, Endpoint()), environment)
        for name in known_providers(upstreams, environment)
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
