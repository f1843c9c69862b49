"""HTTP servers on the loopback that answer as a test wants."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Answer = tuple[int, Mapping[str, str], bytes]
"""The status, headers beside the length, and the body."""


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, bytes], Answer]) -> Iterator[str]:
    """The URL of a server that answers each request and its body so, while the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            status, headers, body = answer(self, self.rfile.read(int(self.headers.get("content-length") or 0)))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _handle  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def forwarded(url: str, request: BaseHTTPRequestHandler, body: bytes) -> Answer:
    """What another server, at the host of a URL, answers to a request with JSON."""
    kind = {"content-type": "application/json"}
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=300)) as connection:
        connection.request(request.command, request.path, body, kind)
        response = connection.getresponse()
        return response.status, kind, response.read()


@dataclass
class Answering:
    """The server's address and what it was asked: the path and the headers, by their lower-case names."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def answering(
    status: int, body: bytes = b'{"data": []}', content_type: str = "application/json"
) -> Iterator[Answering]:
    """A server with one answer to everything."""
    answers = Answering("")

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> Answer:
        answers.asked.append((request.path, {name.lower(): value for name, value in request.headers.items()}))
        return status, {"content-type": content_type}, body

    with serving(answer) as answers.url:
        yield answers
