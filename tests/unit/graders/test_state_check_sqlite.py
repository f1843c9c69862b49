import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Check
from passgate.tasks.model.graders import StateCheck

SCHEMA = """
CREATE TABLE orders (id INTEGER, status TEXT, total REAL, note TEXT);
INSERT INTO orders VALUES (1, 'paid', 9.5, NULL), (2, 'open', 1.0, 'x');
"""


@pytest.fixture
def database(workspace: Path) -> Callable[[str], None]:
    def make(script: str) -> None:
        with closing(sqlite3.connect(workspace / "app.db")) as connection:
            connection.executescript(script)

    return make


async def check(evidence: Evidence, query: str, **wanted: Any) -> Check:
    expectation = {"sqlite": "app.db", "query": query, **wanted}
    options = StateCheck.model_validate({"type": "state_check", "expect": [expectation]})
    result = await grade(options, evidence)
    assert result.error is None
    (only,) = result.checks
    return only


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
async def test_queries(
    query: str, wanted: dict[str, Any], passes: bool, evidence: Evidence, database: Callable[[str], None]
) -> None:
    database(SCHEMA)
    assert (await check(evidence, query, **wanted)).passed is passes


async def test_many_rows_can_be_asked_for(evidence: Evidence, database: Callable[[str], None]) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n"
    database(f"CREATE TABLE numbers AS {numbers}")
    assert (await check(evidence, "SELECT i FROM numbers", min_rows=20_000)).passed
    assert not (await check(evidence, "SELECT i FROM numbers", min_rows=20_001)).passed
    assert (await check(evidence, "SELECT i FROM numbers", max_rows=20_000)).passed
    assert not (await check(evidence, "SELECT i FROM numbers", max_rows=19_999)).passed


async def test_a_missing_database_is_a_failed_check_and_is_not_made(evidence: Evidence, workspace: Path) -> None:
    failed = await check(evidence, "SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db does not exist")
    assert not list(workspace.iterdir())


async def test_a_missing_table_is_a_failed_check(evidence: Evidence, database: Callable[[str], None]) -> None:
    database(SCHEMA)
    failed = await check(evidence, "SELECT 1 FROM customers", value=1)
    assert (failed.passed, failed.message) == (
        False,
        "app.db: SELECT 1 FROM customers: failed: no such table: customers",
    )


async def test_a_file_that_is_no_database_is_a_failed_check(evidence: Evidence, workspace: Path) -> None:
    (workspace / "app.db").write_text("no database at all\n" * 100)
    failed = await check(evidence, "SELECT 1 FROM orders", value=1)
    assert not failed.passed
    assert "file is not a database" in failed.message


@pytest.mark.parametrize("query", ["DELETE FROM orders", "DROP TABLE orders", "SELECT 1; DELETE FROM orders"])
async def test_a_query_cannot_change_the_state(query: str, evidence: Evidence, database: Callable[[str], None]) -> None:
    database(SCHEMA)
    assert not (await check(evidence, query)).passed
    assert (await check(evidence, "SELECT count(*) FROM orders", value=2)).passed


async def test_looking_leaves_nothing_behind(
    evidence: Evidence, database: Callable[[str], None], workspace: Path
) -> None:
    database("PRAGMA journal_mode = WAL;" + SCHEMA)
    before = {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()}
    assert (await check(evidence, "SELECT count(*) FROM orders", value=2)).passed
    assert {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()} == before
    assert not list(evidence.sandbox.scratch.iterdir())


async def test_what_is_only_in_the_write_ahead_log_counts(evidence: Evidence, workspace: Path) -> None:
    with closing(sqlite3.connect(workspace / "app.db")) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + SCHEMA)
        assert (workspace / "app.db-wal").stat().st_size > 0
        assert (await check(evidence, "SELECT count(*) FROM orders", value=2)).passed


async def test_a_fifo_in_the_place_of_the_log_is_not_opened(
    evidence: Evidence, database: Callable[[str], None], workspace: Path
) -> None:
    database(SCHEMA)
    os.mkfifo(workspace / "app.db-wal")
    failed = await check(evidence, "SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db-wal is not a regular file")


@pytest.mark.parametrize(
    "view",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS total FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS total FROM n WHERE i < 0",
    ],
    ids=["counts_for_ever", "never_finds"],
)
async def test_a_view_without_end_is_stopped(view: str, evidence: Evidence, database: Callable[[str], None]) -> None:
    database(f"CREATE VIEW orders AS {view}")
    started = time.monotonic()
    failed = await check(evidence, "SELECT total FROM orders", value=1)
    assert not failed.passed
    assert failed.message.endswith("did not end within 5 seconds")
    assert time.monotonic() - started < 60


async def test_rows_without_end_are_counted_no_further_than_needed(
    evidence: Evidence, database: Callable[[str], None]
) -> None:
    database("CREATE VIEW orders AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
    assert not (await check(evidence, "SELECT i FROM orders", max_rows=5)).passed
    assert not (await check(evidence, "SELECT i FROM orders", rows=[[1], [2]])).passed


async def test_a_huge_value_is_a_failed_check(evidence: Evidence, database: Callable[[str], None]) -> None:
    database("CREATE VIEW orders AS SELECT zeroblob(900000000) AS total")
    failed = await check(evidence, "SELECT total FROM orders", value=1)
    assert not failed.passed
    assert "too big" in failed.message


async def test_the_message_says_what_was_found(evidence: Evidence, database: Callable[[str], None]) -> None:
    database(SCHEMA)
    failed = await check(evidence, "SELECT status FROM orders WHERE id = 1", value="open")
    assert failed.message == ('app.db: SELECT status FROM orders WHERE id = 1: the value is "paid", expected "open"')
