"""Which headers go out with a call, which come back with its answer, and what of them is secret."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

RawHeaders = Sequence[tuple[bytes, bytes]]

# RFC 9110, section 7.6.1, and what every connection has of its own.
_OF_ONE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_SENT_ON: Final = _OF_ONE_CONNECTION | {"host", "accept-encoding", "cookie"}
# What proxies add, and what some servers take in place of the request's own host, path or method.
_OF_PROXIES: Final = re.compile(
    r"forwarded|via|max-forwards|http2-settings|(true|cf)-(client|connecting)-ip"
    r"|x-(forwarded|original|rewrite|real|cluster|client|envoy|proxy|host|http-host|http-method|method)(-.*)?"
)
_NOT_SENT_BACK: Final = _OF_ONE_CONNECTION | {"set-cookie"}
_KEYS: Final = frozenset({"authorization", "x-api-key"})
_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9a-z]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SECRET_NAME: Final = re.compile(r"auth|key|token|secret")
_SHORTEST_SECRET: Final = 6
_MASK: Final = "***"


def headers_out(
    fixed: RawHeaders, passed: Mapping[str, str], *, length: int | None, has_key: bool
) -> list[tuple[bytes, bytes]]:
    """The headers of a request: the endpoint's own, then those that were passed and may go on.

    A configured key takes the place of any that was passed. `length` is that of the body, `None` without one.
    """
    given = {name.lower(): value.strip() for name, value in passed.items()}
    dropped = {name.strip().lower() for name in given.get("connection", "").split(",")}
    if has_key:
        dropped |= _KEYS
    headers = [
        *fixed,
        *(
            (name.encode("ascii"), value.encode("latin-1"))
            for name, value in given.items()
            if name not in dropped and _may_go_on(name) and _VALUE.fullmatch(value)
        ),
    ]
    if length is not None:
        headers.append((b"content-length", b"%d" % length))
        if "content-type" not in given:
            headers.append((b"content-type", b"application/json"))
    return headers


def _may_go_on(name: str) -> bool:
    return bool(name not in _NOT_SENT_ON and _NAME.fullmatch(name) and not _OF_PROXIES.fullmatch(name))


def headers_back(raw: RawHeaders) -> dict[str, str]:
    """The headers of an answer by lower-case name, without those that concern one connection only, and cookies."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in _NOT_SENT_BACK:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def without_secrets(text: str, sent: Iterable[tuple[bytes, bytes]]) -> str:
    """A text without the keys that a request carried."""
    for name, value in sent:
        if _SECRET_NAME.search(name.decode("ascii")):
            secret = value.decode("latin-1").removeprefix("Bearer ").strip()
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, _MASK)
    return text


def masked(body: bytes, sent: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A body without the keys that a request carried."""
    return without_secrets(body.decode("latin-1"), sent).encode("latin-1")
