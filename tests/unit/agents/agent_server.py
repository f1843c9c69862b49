"""An HTTP agent: a real server on the loopback that says what a test wants."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

YES = {"output": "yes"}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Says:
    """One reply; bytes are sent as they are."""

    body: Any = field(default_factory=lambda: YES)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    cut_off: bool = False


class AgentServer:
    """Answers with its replies in turn, the last one repeating, and keeps what it was asked."""

    def __init__(self) -> None:
        self.replies: list[Says] = [Says()]
        self.asked: list[Asked] = []
        self.url = ""
        self.at_once = self.most_at_once = 0
        self._counting = threading.Lock()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self._counting:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self._answer(handler)
        finally:
            with self._counting:
                self.at_once -= 1

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.asked.append(Asked(handler.command, handler.path, dict(handler.headers), json.loads(body)))
        says = self.replies[min(len(self.asked), len(self.replies)) - 1]
        time.sleep(says.pause)
        content = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
        handler.send_response(says.status)
        for name, value in {"Content-Length": str(len(content)), **says.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if says.cut_off:
            handler.wfile.write(content[: len(content) // 2])
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            return
        handler.wfile.write(content)


@contextmanager
def running_agent() -> Iterator[AgentServer]:
    """The server on the loopback while the context lasts."""
    agent = AgentServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError, ValueError):
                agent.answer(self)

        def do_PUT(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            return

    with Server(("127.0.0.1", 0), Handler) as listening:
        agent.url = f"http://127.0.0.1:{listening.server_port}/ask"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield agent
        finally:
            listening.shutdown()
            thread.join()
