"""Bodies of requests as they were before an agent packed them."""

import zlib
from typing import Final

from passgate.tasks.providers.exchange import ApiFormatError

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
        if encoding not in {"", "identity"}:
            content = _unpacked(content, encoding)
    return content


def _unpacked(content: bytes, encoding: str) -> bytes:
    try:
        if encoding == "deflate":
            unpacking = zlib.decompressobj()
            whole = unpacking.decompress(content, MAX_BODY_BYTES)
            is_too_large = bool(unpacking.unconsumed_tail)
        elif encoding in _CODECS:
            whole, is_too_large = _streamed(content, _CODECS[encoding])
        else:
            raise UnknownEncodingError(
                f"the request is packed as {encoding!r}, and passgate reads only {READ_ENCODINGS}"
            )
    except (zlib.error, OSError) as error:
        raise ApiFormatError(f"the request is not {encoding}: {error}") from None
    if is_too_large:
        raise ApiFormatError(TOO_LARGE)
    return whole


def _streamed(content: bytes, codec: str) -> tuple[bytes, bool]:
    """Return what is packed, and whether it is too large."""
    import pyarrow as pa  # 50 ms, which only agents that pack their requests pay for

    whole = bytearray()
    with pa.CompressedInputStream(pa.py_buffer(content), codec) as stream:
        while piece := stream.read(_PIECE):
            whole += piece
            if len(whole) > MAX_BODY_BYTES:
                return b"", True
    return bytes(whole), False
