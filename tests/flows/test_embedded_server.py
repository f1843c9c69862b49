"""Embedded Prefect that starts after its time is over."""

import os
import sqlite3
import threading
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest

from passgate.flows.cli import engine
from passgate.flows.embedded import server as schema
from passgate.flows.embedded.server import EmbeddedServer
from tests.waiting import wait_until


def test_a_server_that_starts_late_ends_and_sets_no_variable_that_agents_would_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    set_to: list[str] = []
    monkeypatch.setattr("prefect.context.refresh_global_settings_context", lambda: set_to.append("settings"))
    before = dict(os.environ)
    waited_for: Future[EmbeddedServer | None] = Future()
    waited_for.cancel()
    engine._connect(waited_for, {})
    assert (set_to, dict(os.environ)) == ([], before)
    wait_until(lambda: "prefect-server" not in {thread.name for thread in threading.enumerate()})


def test_the_snapshot_is_that_of_the_installed_prefect() -> None:
    """Where it is not: `make engine-schema`."""
    assert schema.snapshot_head() == schema.installed_head() is not None


def test_a_database_is_made_once(tmp_path: Path) -> None:
    database = tmp_path / "home" / "prefect.db"
    assert schema.make_database(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO flow (name) VALUES ('kept')")
        connection.commit()
    assert schema.make_database(database)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT name FROM flow").fetchall() == [("kept",)]
    assert {entry.suffix for entry in database.parent.iterdir()} <= {".db", ".db-wal", ".db-shm"}


def test_a_database_of_another_prefect_is_left_to_prefect(tmp_path: Path) -> None:
    database = tmp_path / "prefect.db"
    assert schema.make_database(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'older'")
        connection.commit()
    assert not schema.make_database(database)
    empty = tmp_path / "empty.db"
    empty.touch()
    assert not schema.make_database(empty)
