"""The schema of Prefect's database from the snapshot: that of the installed Prefect, and made once."""

import sqlite3
from contextlib import closing
from pathlib import Path

from passgate.flows.embedded import schema


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
