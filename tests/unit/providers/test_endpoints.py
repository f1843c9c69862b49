import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import Endpoint
from passgate.tasks.providers.endpoints import ResolvedEndpoint, resolve_endpoint, resolve_endpoints
from passgate.tasks.providers.registry import PROVIDERS, Provider

ENVIRONMENT = {
    "OPENAI_BASE_URL": "https://openai.example/v1/",
    "OPENAI_API_KEY": "sk-o",
    "ANTHROPIC_BASE_URL": "https://anthropic.example",
    "ANTHROPIC_API_KEY": "sk-a",
    "TEAM_KEY": " sk-team\n",
}


OWN = Endpoint(base_url="http://127.0.0.1:8080/v1", api_key_variable="TEAM_KEY")
OPENAI, ANTHROPIC = ("openai", "OPENAI_API_KEY", "authorization"), ("anthropic", "ANTHROPIC_API_KEY", "x-api-key")


@pytest.mark.parametrize(
    ("provider", "environment", "url", "key"),
    [
        pytest.param(OPENAI, ENVIRONMENT, "https://openai.example/v1", "sk-o", id="openai"),
        pytest.param(ANTHROPIC, ENVIRONMENT, "https://anthropic.example", "sk-a", id="anthropic"),
        pytest.param(OPENAI, {}, "https://api.openai.com/v1", "", id="openai, no variable"),
        pytest.param(ANTHROPIC, {"ANTHROPIC_BASE_URL": ""}, "https://api.anthropic.com", "", id="anthropic, empty"),
    ],
)
def test_the_usual_variables_say_where_a_provider_is(
    provider: tuple[str, str, str], environment: dict[str, str], url: str, key: str
) -> None:
    name, key_variable, header = provider
    found = resolve_endpoint(PROVIDERS[name], Endpoint(), environment)
    assert found == ResolvedEndpoint(url, key, key_variable, header)
    assert "sk-" not in repr(found)
    assert found.key_headers == ({header: f"Bearer {key}" if name == "openai" else key} if key else {})


@pytest.mark.parametrize(
    ("name", "variable", "headers"),
    [
        ("gemini", "GOOGLE_API_KEY", {"x-goog-api-key": "k-1"}),
        ("anthropic", "ANTHROPIC_AUTH_TOKEN", {"authorization": "Bearer k-1"}),
        ("azure", "AZURE_OPENAI_AD_TOKEN", {"authorization": "Bearer k-1"}),
    ],
)
def test_a_key_may_stand_where_clients_look_for_it_too(name: str, variable: str, headers: dict[str, str]) -> None:
    environment = {variable: "k-1", "AZURE_OPENAI_ENDPOINT": "https://my.openai.azure.com/"}
    provider = PROVIDERS[name]
    assert resolve_endpoint(provider, Endpoint(), environment).key_headers == headers
    usual = resolve_endpoint(provider, Endpoint(), {**environment, provider.key_variable: "k-2"})
    assert usual.key_headers == {provider.key_header: "k-2"}


def test_a_provider_without_a_public_address_is_known_only_with_one() -> None:
    assert "azure" not in resolve_endpoints({}, {})
    variables = {"AZURE_OPENAI_ENDPOINT": "https://my.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k"}
    found = resolve_endpoints({}, variables)["azure"]
    assert (found.base_url, found.key_headers) == ("https://my.openai.azure.com", {"api-key": "k"})
    with pytest.raises(UsageError, match=r"AZURE_OPENAI_ENDPOINT is not set, and upstreams\.azure has no base_url"):
        resolve_endpoints({"azure": Endpoint()}, {})


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider.name)
def test_the_endpoint_of_the_agent_goes_first(provider: Provider) -> None:
    target = resolve_endpoint(provider, OWN, ENVIRONMENT)
    assert (target.base_url, target.key, target.key_variable) == (OWN.base_url, "sk-team", "TEAM_KEY")
    assert resolve_endpoint(provider, OWN.model_copy(update={"api_key_variable": "GONE"}), ENVIRONMENT).key == ""


@pytest.mark.parametrize(
    "url",
    [
        *("", "host/v1", "ftp://host/v1", "file:///etc/passwd", "https://", "https:///v1", "http://host:port/v1"),
        *("http://host/v1?key=1", "http://host/v1#top", "http://ho\nst/"),
    ],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        ResolvedEndpoint(url)


def test_an_address_that_holds_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError, match="holds a user or password") as caught:
        ResolvedEndpoint("https://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["a\nb", "a\x00", "schlüssel", "sk-\N{ZERO WIDTH SPACE}x"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(UsageError, match="the value of OPENAI_API_KEY holds characters") as caught:
        resolve_endpoint(PROVIDERS["openai"], Endpoint(), {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)
