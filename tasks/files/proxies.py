"""Proxies that the environment names. What is on this machine is never asked for through one."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_EXCEPTIONS: Final = ("NO_PROXY", "no_proxy")
_ALL: Final = "*"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def exceptions_with_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that except hosts from proxies, with the loopback among them.

    Programs read one of the two spellings, so what one of them says holds for both.
    """
    found = {}
    for name in _EXCEPTIONS:
        stated = environment.get(name) or "".join(environment.get(other) or "" for other in _EXCEPTIONS)
        hosts = [host.strip() for host in stated.split(",") if host.strip()]
        found[name] = _ALL if _ALL in hosts else ",".join(dict.fromkeys([*hosts, *_LOOPBACK]))
    return found


def find_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL, as curl and httpx read it; `None` where there is none."""
    # Imported late: it takes longer than the command line.
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    text = proxies.get(parts.scheme) or proxies.get("all")
    return text if not text or "://" in text else f"http://{text}"


def via_proxy(url: str) -> str:
    """Return what a message about a URL says of the proxy in between, as in ` (through the proxy http://host:3128)`."""
    proxy = find_proxy(url)
    if not proxy:
        return ""
    parts = urlsplit(proxy)
    # The address may hold a password.
    return f" (through the proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]})"
