"""Tries: an HTTP agent answers without end, or with a few bytes that are unpacked to gigabytes.

Must come: FAIL, and no memory is filled.
"""

import gzip
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.attacks.conftest import Attacked

ZEROS = gzip.compress(b" " * 50_000_000)
BOMB = ZEROS * 40
"""Two gigabytes of blanks, in a few megabytes."""


class Endless(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"[" * 65_536)
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        return


class Packed(Endless):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(BOMB)))
        self.end_headers()
        try:
            self.wfile.write(BOMB)
        except OSError:
            return


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("handler", [Endless, Packed])
def test_service_whose_answer_never_ends(attacked: Attacked, handler: type[BaseHTTPRequestHandler]) -> None:
    with served(handler) as url:
        attacked.write("agents.yaml", f"agents: {{desk: {{agent: 'http:{url}', http: {{output: answer}}}}}}\n")
        attacked.land()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcome = attacked.gate()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert outcome.code == 1, outcome.printed
    assert grown < 400_000, f"{grown} KB"
