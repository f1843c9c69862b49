import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import state_check
from tests.unit.graders.trials import Graded

Database = Callable[[str], None]
SCHEMA = """
CREATE TABLE orders (id INTEGER, status TEXT, total REAL, note TEXT);
INSERT INTO orders VALUES (1, 'paid', 9.5, NULL), (2, 'open', 1.0, 'x');
"""


@pytest.fixture
def database(workspace: Path) -> Database:
    def make(script: str) -> None:
        with closing(sqlite3.connect(workspace / "app.db")) as connection:
            connection.executescript(script)

    return make


@pytest.fixture
def ask(check: Graded) -> Graded:
    """The check of what a query gives."""
    return lambda query, **wanted: check(sqlite="app.db", query=query, **wanted)


@pytest.mark.parametrize(
    ("query", "wanted", "passes"),
    [
        ("SELECT id, status FROM orders ORDER BY id", {"rows": [[1, "paid"], [2, "open"]]}, True),
        ("SELECT id, status FROM orders ORDER BY id", {"rows": [[2, "open"], [1, "paid"]]}, False),
        ("SELECT id, status FROM orders ORDER BY id", {"rows": [[1, "paid"]]}, False),
        ("SELECT id FROM orders ORDER BY id", {"rows": [[1], [2], [3]]}, False),
        ("SELECT id FROM orders WHERE id = 9", {"rows": []}, True),
        ("SELECT id FROM orders", {"rows": []}, False),
        ("SELECT count(*) FROM orders", {"value": 2}, True),
        ("SELECT count(*) FROM orders", {"value": "2"}, False),
        ("SELECT id FROM orders WHERE id = 1", {"value": True}, False),
        ("SELECT total FROM orders WHERE id = 2", {"value": 1}, True),
        ("SELECT note FROM orders WHERE id = 1", {"value": None}, True),
        ("SELECT note FROM orders WHERE id = 2", {"value": None}, False),
        ("SELECT note FROM orders WHERE id = 9", {"value": None}, False),
        ("SELECT id FROM orders", {"min_rows": 2}, True),
        ("SELECT id FROM orders", {"min_rows": 3}, False),
        ("SELECT id FROM orders", {"max_rows": 2}, True),
        ("SELECT id FROM orders", {"max_rows": 1}, False),
        ("SELECT id FROM orders", {"max_rows": 0}, False),
    ],
)
async def test_queries(query: str, wanted: dict[str, Any], passes: bool, ask: Graded, database: Database) -> None:
    database(SCHEMA)
    assert (await ask(query, **wanted)).passed is passes


async def test_many_rows_can_be_asked_for(ask: Graded, database: Database) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n"
    database(f"CREATE TABLE numbers AS {numbers}")
    assert (await ask("SELECT i FROM numbers", min_rows=20_000)).passed
    assert not (await ask("SELECT i FROM numbers", min_rows=20_001)).passed
    assert (await ask("SELECT i FROM numbers", max_rows=20_000)).passed
    assert not (await ask("SELECT i FROM numbers", max_rows=19_999)).passed


async def test_a_missing_database_is_a_failed_check_and_is_not_made(ask: Graded, workspace: Path) -> None:
    failed = await ask("SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db does not exist")
    assert not list(workspace.iterdir())


@pytest.mark.parametrize(
    ("script", "query", "says"),
    [
        (SCHEMA, "SELECT 1 FROM customers", "app.db: SELECT 1 FROM customers: failed: no such table: customers"),
        ("CREATE VIEW orders AS SELECT zeroblob(900000000) AS total", "SELECT total FROM orders", "too big"),
        (
            SCHEMA,
            "SELECT status FROM orders WHERE id = 1",
            'app.db: SELECT status FROM orders WHERE id = 1: the value is "paid", expected 1',
        ),
    ],
    ids=["no table", "a huge value", "another value"],
)
async def test_a_failed_check_says_what_was_found(
    script: str, query: str, says: str, ask: Graded, database: Database
) -> None:
    database(script)
    failed = await ask(query, value=1)
    assert not failed.passed
    assert says in failed.message


async def test_a_file_that_is_no_database_is_a_failed_check(ask: Graded, workspace: Path) -> None:
    (workspace / "app.db").write_text("no database at all\n" * 100)
    failed = await ask("SELECT 1 FROM orders", value=1)
    assert not failed.passed
    assert "file is not a database" in failed.message


@pytest.mark.parametrize("query", ["DELETE FROM orders", "DROP TABLE orders", "SELECT 1; DELETE FROM orders"])
async def test_a_query_cannot_change_the_state(query: str, ask: Graded, database: Database) -> None:
    database(SCHEMA)
    assert not (await ask(query)).passed
    assert (await ask("SELECT count(*) FROM orders", value=2)).passed


async def test_looking_leaves_nothing_behind(ask: Graded, database: Database, workspace: Path) -> None:
    database("PRAGMA journal_mode = WAL;" + SCHEMA)
    before = {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()}
    assert (await ask("SELECT count(*) FROM orders", value=2)).passed
    assert {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()} == before
    assert not list((workspace.parent / "scratch").iterdir())


async def test_what_is_only_in_the_write_ahead_log_counts(ask: Graded, workspace: Path) -> None:
    with closing(sqlite3.connect(workspace / "app.db")) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + SCHEMA)
        assert (workspace / "app.db-wal").stat().st_size > 0
        assert (await ask("SELECT count(*) FROM orders", value=2)).passed


async def test_a_fifo_in_the_place_of_the_log_is_not_opened(ask: Graded, database: Database, workspace: Path) -> None:
    database(SCHEMA)
    os.mkfifo(workspace / "app.db-wal")
    failed = await ask("SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db-wal is not a regular file")


@pytest.mark.parametrize(
    "view",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS total FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS total FROM n WHERE i < 0",
    ],
    ids=["counts_for_ever", "never_finds"],
)
async def test_a_view_without_end_is_stopped(
    view: str, ask: Graded, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_check.QUERY_SECONDS == 5
    monkeypatch.setattr(state_check, "QUERY_SECONDS", 0.2)
    database(f"CREATE VIEW orders AS {view}")
    failed = await ask("SELECT total FROM orders", value=1)
    assert not failed.passed
    assert failed.message.endswith("did not end within 0.2 seconds")


async def test_rows_without_end_are_counted_no_further_than_needed(ask: Graded, database: Database) -> None:
    database("CREATE VIEW orders AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
    assert not (await ask("SELECT i FROM orders", max_rows=5)).passed
    assert not (await ask("SELECT i FROM orders", rows=[[1], [2]])).passed
