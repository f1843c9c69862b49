"""Which proxies stand in between, and that the loopback has none."""

import os
from collections.abc import Mapping

import pytest

from passgate.tasks.files.proxies import exceptions_with_loopback, find_proxy, is_loopback, via_proxy


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_what_is_on_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "example.org", "localhost.example.org", "10.0.0.1", "127.0.0.1.example.org"])
def test_what_is_elsewhere(host: str) -> None:
    assert not is_loopback(host)


LOOPBACK = "127.0.0.1,localhost,::1"


@pytest.mark.parametrize(
    ("environment", "excepted"),
    [
        ({}, LOOPBACK),
        ({"HTTPS_PROXY": "http://p:1"}, LOOPBACK),
        ({"all_proxy": "socks5://p:1", "no_proxy": "a.example, localhost"}, "a.example,localhost,127.0.0.1,::1"),
        ({"HTTP_PROXY": "p", "NO_PROXY": "a.example"}, f"a.example,{LOOPBACK}"),
        ({"HTTP_PROXY": "p", "NO_PROXY": "*"}, "*"),
    ],
)
def test_the_loopback_is_excepted_beside_what_is_excepted_anyway(environment: Mapping[str, str], excepted: str) -> None:
    assert exceptions_with_loopback(environment) == {"NO_PROXY": excepted, "no_proxy": excepted}


def test_the_proxy_of_a_url_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    assert via_proxy("https://models.example/v1") == ""
    monkeypatch.setenv("HTTPS_PROXY", "http://ada:secret@proxy.example:3128")
    monkeypatch.setenv("all_proxy", "proxy.example:1080")
    assert via_proxy("https://models.example/v1") == " (through the proxy http://proxy.example:3128)"
    assert via_proxy("http://models.example/v1") == " (through the proxy http://proxy.example:1080)"
    assert [find_proxy(url) for url in ("https://127.0.0.1:1/v1", "http://[::1]:1", "http://localhost")] == [None] * 3
    monkeypatch.setenv("no_proxy", "models.example")
    assert via_proxy("https://models.example/v1") == ""
