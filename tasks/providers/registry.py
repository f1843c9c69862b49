"""The providers that passgate knows. To add one, write its API as a file of `apis` and name it here."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from passgate.tasks.providers.apis.interface import Api

# Some names of models have slashes. No segment begins with a dot, and a percent sign would be decoded once more.
SEGMENT: Final = r"[A-Za-z0-9_:@+~=,-][A-Za-z0-9._:@+~=,-]*"


@dataclass(frozen=True, slots=True)
class Provider:
    """What is known of a provider beforehand."""

    name: str  # In agents.yaml, and in its addresses at the meter
    url: str  # Its own base URL, which takes no call without a key; empty where every customer has another one
    base_url_variables: Sequence[str]  # An agent gets all of them, the meter takes the first
    key_variable: str
    key_header: str  # Of a request; `authorization` holds `Bearer KEY`
    apis: Sequence[str]  # Their classes below `apis`, as in `messages.Messages`
    models: str  # Where its endpoints list their models, below the base URL
    base_path: str = ""  # What every base URL ends with, as in `/v1`
    prefix: str = ""
    """A pattern of what may stand before the path of an API; its group `model` is the model of the call."""
    free_paths: Sequence[tuple[str, str]] = ()  # Methods and patterns of paths that are passed on and cost nothing
    headers: dict[str, str] = field(default_factory=dict)  # What every request has to say
    other_keys: dict[str, str] = field(default_factory=dict)
    """Further variables in which clients look for a key, and the headers that it is sent in."""
    key_parameter: str = ""  # Of a query, in which a client may send the key too

    @property
    def placeholder(self) -> str:
        """The name of its address in templates of agents.yaml."""
        return f"{self.name}_base_url"

    def key_source(self, environment: Mapping[str, str]) -> str:
        """Return the variable with the key: the first that is set, else the usual one."""
        return next(
            (name for name in (self.key_variable, *self.other_keys) if environment.get(name)), self.key_variable
        )

    def find_api(self, path: str, query: str = "") -> "Api | None":
        """Return the API of a POST to this path below the base URL; `None` for a path that is no model call."""
        for api in _api_classes(self.name):
            if match := re.fullmatch(self.prefix + api.path_pattern, path):
                return api(path, query, match.span("model") if "model" in match.re.groupindex else None)
        return None

    def query_without_key(self, query: str) -> str:
        """Return a query without the key of the caller."""
        pairs = parse_qsl(query, keep_blank_values=True)
        kept = [pair for pair in pairs if pair[0] != self.key_parameter]
        return query if len(kept) == len(pairs) else urlencode(kept)

    def is_free(self, method: str, path: str) -> bool:
        """Return whether a request may pass that costs nothing. The key opens more than a trial has to see."""
        models = ("GET|HEAD", rf"{self.models}(/{SEGMENT})*")
        return any(
            re.fullmatch(methods, method) and re.fullmatch(pattern, path)
            for methods, pattern in (models, *self.free_paths)
        )


def judging_apis() -> "dict[str, tuple[Provider, type[Api]]]":
    """Return the APIs that answer conversations, each with its first provider, by their names."""
    found = ((api.name, (provider, api)) for provider in PROVIDERS.values() for api in _api_classes(provider.name))
    return {name: one for name, one in reversed([*found]) if one[1].schema_key}


@cache
def _api_classes(provider: str) -> "tuple[type[Api], ...]":
    named = [name.split(".") for name in PROVIDERS[provider].apis]
    return tuple(getattr(import_module(f"passgate.tasks.providers.apis.{module}"), api) for module, api in named)


_OPENAI_APIS: Final = (
    *("chat_completions.ChatCompletions", "responses.Responses"),
    *("openai_extras.Compaction", "openai_extras.Embeddings"),
)
PROVIDERS: Final = {
    provider.name: provider
    for provider in (
        Provider(
            "openai",
            url="https://api.openai.com/v1",
            base_url_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
            key_variable="OPENAI_API_KEY",
            key_header="authorization",
            apis=_OPENAI_APIS,
            models="models",
            base_path="/v1",
        ),
        Provider(
            "anthropic",
            url="https://api.anthropic.com",
            base_url_variables=("ANTHROPIC_BASE_URL",),
            key_variable="ANTHROPIC_API_KEY",
            key_header="x-api-key",
            apis=("messages.Messages",),
            models="v1/models",
            free_paths=(("POST", "v1/messages/count_tokens"),),
            headers={"anthropic-version": "2023-06-01"},
            other_keys={"ANTHROPIC_AUTH_TOKEN": "authorization"},
        ),
        Provider(
            "azure",
            url="",
            base_url_variables=("AZURE_OPENAI_ENDPOINT",),
            key_variable="AZURE_OPENAI_API_KEY",
            key_header="api-key",
            apis=_OPENAI_APIS,
            models="openai/v1/models",
            prefix=rf"openai/(?:v1/|deployments/(?P<model>{SEGMENT})/)?",
            free_paths=(("GET", "openai/models"),),
            other_keys={"AZURE_OPENAI_AD_TOKEN": "authorization"},
        ),
        Provider(
            "gemini",
            url="https://generativelanguage.googleapis.com",
            base_url_variables=("GOOGLE_GEMINI_BASE_URL",),
            key_variable="GEMINI_API_KEY",
            key_header="x-goog-api-key",
            key_parameter="key",
            other_keys={"GOOGLE_API_KEY": "x-goog-api-key"},
            apis=("gemini.Gemini",),
            models="v1beta/models",
            free_paths=(
                ("GET", rf"v1(?:alpha)?/models(/{SEGMENT})?"),
                ("POST", rf"v1(?:alpha|beta)?/(?:models|tunedModels)/{SEGMENT}:countTokens"),
            ),
        ),
    )
}


def known_providers(named: Container[str], environment: Mapping[str, str]) -> list[str]:
    """Return the providers with an address: their own one, that of their variable, or one that somebody has named."""
    return [
        name
        for name, provider in PROVIDERS.items()
        if name in named or provider.url or environment.get(provider.base_url_variables[0])
    ]


KEY_HEADERS: Final = frozenset(provider.key_header for provider in PROVIDERS.values())
