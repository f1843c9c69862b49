"""Connections to one endpoint: kept alive, taken again, and their breakdowns described."""

import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, cast

import httpcore
import httpx

from passgate.tasks.files.proxies import find_proxy
from passgate.tasks.providers.endpoints import ResolvedEndpoint
from passgate.tasks.providers.retries import AttemptError

MOST_BYTES: Final = 64 * 2**20  # Of one answer
_GZIP: Final = 0x1F  # Its first byte
_KEEP_ALIVE_SECONDS: Final = 60.0
_CLOSED_MEANWHILE: Final = (httpcore.ReadError, httpcore.WriteError, httpcore.RemoteProtocolError)
_BREAKDOWNS: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    OSError,
    UnicodeError,
)


class Wire:
    """The connections to one endpoint. Each carries one call at a time; the last one that was free is taken first.

    A pool that all calls share costs several times as much, for it looks at every connection for every call.
    """

    def __init__(self, endpoint: ResolvedEndpoint) -> None:
        self._endpoint = endpoint
        url = endpoint.url
        self._origin = httpcore.Origin(url.raw_scheme, url.raw_host, url.port or {"https": 443}.get(url.scheme, 80))
        self._pool: httpcore.AsyncConnectionPool | None = None  # Makes the connections and keeps none
        self._idle: list[httpcore.AsyncConnectionInterface] = []
        self._closed = False

    async def ask(self, request: httpcore.Request) -> tuple[httpcore.AsyncConnectionInterface, httpcore.Response]:
        """Send a request. Return its connection and the answer, of which status and headers have come.

        A kept connection that the server has closed meanwhile is replaced by a new one.
        """
        while self._idle:
            connection = self._idle.pop()
            if not connection.has_expired():
                try:
                    return connection, await connection.handle_async_request(request)
                except _CLOSED_MEANWHILE:
                    await connection.aclose()
                    break
            await connection.aclose()
        if self._pool is None:
            # The certificates take 25 ms, so they are loaded once, and not before there is a connection.
            tls = httpx.create_ssl_context() if self._endpoint.url.scheme == "https" else None
            # The proxy that the environment names for the address, as curl and httpx read it.
            named = find_proxy(self._endpoint.base_url)
            named_proxy = httpx.Proxy(named) if named else None
            proxy = httpcore.Proxy(url=str(named_proxy.url), auth=named_proxy.raw_auth) if named_proxy else None
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=tls, proxy=proxy, keepalive_expiry=_KEEP_ALIVE_SECONDS
            )
        connection = self._pool.create_connection(self._origin)
        return connection, await connection.handle_async_request(request)

    async def release(self, connection: httpcore.AsyncConnectionInterface, response: httpcore.Response) -> None:
        """Give a connection back. One whose answer was not read to its end is closed."""
        await response.aclose()
        if connection.is_idle() and not self._closed:
            self._idle.append(connection)
        else:
            await connection.aclose()

    async def close(self) -> None:
        """Close what is kept, and keep nothing from now on."""
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()


@contextmanager
def breakdowns(silence: float) -> Iterator[None]:
    """Turn what goes wrong on a connection into an `AttemptError`; `silence` is the longest one that was allowed."""
    try:
        yield
    except _BREAKDOWNS as error:
        waited, detail = 0.0, f": {error}" if str(error) else ""
        match error:
            case httpcore.ConnectTimeout():
                waited, what = silence, "no connection was made in time"
            case httpcore.TimeoutException():
                waited, what = silence, f"it was silent for {silence:g} s"
            case httpcore.ConnectError() | httpcore.ProxyError():
                what = f"it cannot be reached{detail}"
            case _:
                what = f"the connection broke{detail}"
        raise AttemptError(what, silence=waited) from error


async def pieces(response: httpcore.Response, silence: float) -> AsyncGenerator[bytes, None]:
    """Yield the body of an answer as it comes, unpacked. Raises `AttemptError` if it breaks off or is larger than
    `MOST_BYTES`.
    """
    size = 0
    unpack = _unpacking(response)
    async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_stream())) as stream:
        while True:
            with breakdowns(silence):
                piece = await anext(stream, b"")
            if not piece:
                return
            piece = unpack(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise AttemptError(f"its answer is larger than {MOST_BYTES // 2**20} MiB", final=True)
            if piece:
                yield piece


def window_bits(beginning: bytes) -> int:
    """Return the `wbits` for a body: gzip and zlib it tells apart by itself, and some who say deflate
    leave the header of zlib out.
    """
    first = beginning[0] if beginning else zlib.DEFLATED
    return zlib.MAX_WBITS | 32 if first == _GZIP or first % 16 == zlib.DEFLATED else -zlib.MAX_WBITS


def _unpacking(response: httpcore.Response) -> Callable[[bytes], bytes]:
    """Return the function that unpacks the body's bytes. An unknown encoding is left as it is."""
    encodings = {value.strip().lower() for name, value in response.headers if name.lower() == b"content-encoding"}
    if not encodings & {b"gzip", b"x-gzip", b"deflate"}:
        return lambda piece: piece
    unpacking: Any = None

    def unpack(piece: bytes) -> bytes:
        nonlocal unpacking
        unpacking = unpacking or zlib.decompressobj(wbits=window_bits(piece))
        try:
            unpacked: bytes = unpacking.decompress(piece, MOST_BYTES + 1)
        except zlib.error as error:
            raise AttemptError(f"its answer is not packed as it says: {error}") from error
        return unpacked

    return unpack
