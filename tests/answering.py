"""An HTTP server on the loopback with one answer to everything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)


@dataclass
class Answering:
    """The server's address and what it was asked: the path and the headers, by their lower-case names."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def answering(
    status: int, body: bytes = b'{"data": []}', content_type: str = "application/json"
) -> Iterator[Answering]:
    """The server, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        answers = Answering(f"http://127.0.0.1:{server.server_port}")
        yield answers


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Let a server answer, in a thread, for as long as the context lasts."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
