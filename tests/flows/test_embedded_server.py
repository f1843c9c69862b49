"""Embedded Prefect that starts after its time is over."""

import os
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from passgate.flows.cli import engine
from passgate.flows.embedded.server import EmbeddedServer
from tests.waiting import wait_until


def test_a_server_that_starts_late_ends_and_sets_no_variable_that_agents_would_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    set_to: list[str] = []
    monkeypatch.setattr(engine, "_environment", lambda variables: set_to.append(str(variables)))
    before = dict(os.environ)
    waited_for: Future[EmbeddedServer | None] = Future()
    waited_for.cancel()
    engine._connect(waited_for, {})
    assert (set_to, dict(os.environ)) == ([], before)
    wait_until(lambda: "prefect-server" not in {thread.name for thread in threading.enumerate()})
