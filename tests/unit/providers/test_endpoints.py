import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import Endpoint
from passgate.tasks.providers.endpoints import ResolvedEndpoint, resolved_endpoint

ENVIRONMENT = {
    "OPENAI_BASE_URL": "https://openai.example/v1/",
    "OPENAI_API_KEY": "sk-o",
    "ANTHROPIC_BASE_URL": "https://anthropic.example",
    "ANTHROPIC_API_KEY": "sk-a",
    "TEAM_KEY": " sk-team\n",
}


def test_the_usual_variables_say_where_a_provider_is() -> None:
    assert resolved_endpoint("openai", Endpoint(), ENVIRONMENT) == ResolvedEndpoint(
        "https://openai.example/v1", "sk-o", "OPENAI_API_KEY", "authorization"
    )
    assert resolved_endpoint("anthropic", Endpoint(), ENVIRONMENT) == ResolvedEndpoint(
        "https://anthropic.example", "sk-a", "ANTHROPIC_API_KEY", "x-api-key"
    )


def test_without_any_variable_it_is_the_public_address() -> None:
    assert resolved_endpoint("openai", Endpoint(), {}) == ResolvedEndpoint(
        "https://api.openai.com/v1", "", "OPENAI_API_KEY", "authorization"
    )
    assert (
        resolved_endpoint("anthropic", Endpoint(), {"ANTHROPIC_BASE_URL": ""}).base_url == "https://api.anthropic.com"
    )


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_endpoint_of_the_agent_goes_first(provider) -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:8080/v1", api_key_variable="TEAM_KEY")
    target = resolved_endpoint(provider, endpoint, ENVIRONMENT)
    assert (target.base_url, target.key, target.key_variable) == ("http://127.0.0.1:8080/v1", "sk-team", "TEAM_KEY")


def test_a_named_variable_that_is_not_set_gives_no_other_key() -> None:
    assert resolved_endpoint("openai", Endpoint(api_key_variable="GONE"), ENVIRONMENT).key == ""


def test_the_key_goes_into_the_header_of_its_api() -> None:
    assert resolved_endpoint("openai", Endpoint(), ENVIRONMENT).key_headers == {"authorization": "Bearer sk-o"}
    assert resolved_endpoint("anthropic", Endpoint(), ENVIRONMENT).key_headers == {"x-api-key": "sk-a"}
    assert ResolvedEndpoint("https://host").key_headers == {}


@pytest.mark.parametrize(
    "url",
    [
        "host/v1",
        "ftp://host/v1",
        "https://",
        "https:///v1",
        "http://host:port/v1",
        "http://host/v1?key=1",
        "http://host/v1#top",
        "file:///etc/passwd",
        "http://ho\nst/",
        "",
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
        resolved_endpoint("openai", Endpoint(), {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_the_key_is_not_shown() -> None:
    assert "sk-o" not in repr(resolved_endpoint("openai", Endpoint(), ENVIRONMENT))


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("[::2]", False),
    ],
)
def test_this_machine_is_known(host: str, is_loopback: bool) -> None:
    assert ResolvedEndpoint(f"http://{host}:8080/v1").is_loopback is is_loopback
