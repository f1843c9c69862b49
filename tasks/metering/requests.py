"""What agents send: read within bounds, unpacked, and made ready for the provider."""

import json
import zlib
from typing import Any

from starlette.requests import Request

from passgate.tasks.providers.exchange import ApiFormatError

MAX_BODY_BYTES = 64 * 1024 * 1024
_TOO_LARGE = f"the request is larger than {MAX_BODY_BYTES // 1024 // 1024} MiB"


async def read_body(request: Request) -> bytes:
    """The body of a request as it was before it was packed. Raises `ApiFormatError`."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MAX_BODY_BYTES:
            raise ApiFormatError(_TOO_LARGE)
    return _unpacked(bytes(parts), request.headers.get("content-encoding", "identity"))


def _unpacked(content: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return content
    if encoding != "gzip":
        raise ApiFormatError(f"the request is packed as {encoding!r}, and passgate reads only gzip")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(content, MAX_BODY_BYTES)
    except zlib.error as error:
        raise ApiFormatError(f"the request is not gzip: {error}") from None
    if unpacking.unconsumed_tail:
        raise ApiFormatError(_TOO_LARGE)
    return unpacked


def document_of(content: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises `ApiFormatError`."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ApiFormatError(f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiFormatError("the request is not a JSON object")
    return body


def sent_headers(request: Request) -> dict[str, str]:
    """The agent's headers for the provider, which gets the body unpacked. What was sent twice is one list."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        if name != "content-encoding":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
