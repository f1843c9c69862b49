"""Bodies of requests as they were before an agent packed them."""

import zlib
from typing import Final

from passgate.tasks.providers.exchange import ApiFormatError
from passgate.tasks.providers.wire import window_bits

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
TOO_LARGE: Final = f"the request is larger than {MAX_BODY_BYTES // 1024 // 1024} MiB"
_CODECS: Final = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd", "br": "brotli"}
READ_ENCODINGS: Final = "gzip, deflate, zstd, br"
_PIECE: Final = 2**20


class UnknownEncodingError(ApiFormatError):
    """A request is packed as passgate cannot read it, which is no fault of the agent."""


def unpack(content: bytes, encodings: str) -> bytes:
    """Return the body of a request, unpacked by its `Content-Encoding`. Raises `ApiFormatError`."""
    for encoding in reversed([name.strip().lower() for name in encodings.split(",")]):
        if encoding in {"", "identity"}:
            continue
        if encoding != "deflate" and encoding not in _CODECS:
            what = f"the request is packed as {encoding!r}, and passgate reads only {READ_ENCODINGS}"
            raise UnknownEncodingError(what)
        try:
            if encoding == "deflate":
                content = zlib.decompressobj(wbits=window_bits(content)).decompress(content, MAX_BODY_BYTES + 1)
            else:
                content = _decompress(content, _CODECS[encoding])
        except (zlib.error, OSError) as error:
            raise ApiFormatError(f"the request is not {encoding}: {error}") from None
        if len(content) > MAX_BODY_BYTES:
            raise ApiFormatError(TOO_LARGE)
    return content


def _decompress(content: bytes, codec: str) -> bytes:
    """Unpack at most a piece more than is allowed."""
    import pyarrow as pa  # 50 ms, which only agents that pack their requests pay for

    whole = bytearray()
    with pa.CompressedInputStream(pa.py_buffer(content), codec) as stream:
        while len(whole) <= MAX_BODY_BYTES and (piece := stream.read(_PIECE)):
            whole += piece
    return bytes(whole)
