"""Agents that find no keys, no proxies and nobody to answer."""

import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from passgate.tasks.providers import probe


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take out what says where models are: keys, base URLs and proxies. Answers have time, and pauses take none."""
    monkeypatch.setattr(probe, "CONNECT_SECONDS", 240.0)
    for module in ("agents.cli", "agents.http", "planning.diagnosis"):
        monkeypatch.setattr(f"passgate.tasks.{module}.PROBE_SECONDS", 240.0)
    monkeypatch.setattr(probe, "time", SimpleNamespace(sleep=lambda seconds: None))
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_")) or name == "MY_KEY" or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def closed() -> Iterator[str]:
    """An address at which nobody answers, unless a test begins to."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
