"""The migrations on databases that the agent has not seen."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import migrate as tool
import pytest

OLD = {
    "0001_articles.sql": "9530d3c4",
    "0002_stock_moves.sql": "0cef002e",
}
ARTICLES = [(1, "A-1", "washer", 0.29), (2, "A-2", "wrench", 1.15), (9, "A-9", "pump", 1234.56), (10, "B", "pin", 0.07)]
MOVES = [(1, 9, "2025-01-02", 5), (2, 1, "2025-01-03", -2), (7, 9, "2025-02-03", 1)]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A database of a branch: it has the two released migrations and rows."""
    folder = tmp_path / "released"
    folder.mkdir()
    for name in OLD:
        (folder / name).write_bytes((tool.MIGRATIONS / name).read_bytes())
    database = tmp_path / "branch.db"
    tool.migrate(database, folder)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany("INSERT INTO articles VALUES (?, ?, ?, ?)", ARTICLES)
        connection.executemany("INSERT INTO stock_moves VALUES (?, ?, ?, ?)", MOVES)
    yield database


def ask(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def test_released_migrations_are_as_they_were() -> None:
    found = {name: hashlib.sha256((tool.MIGRATIONS / name).read_bytes()).hexdigest()[:8] for name in OLD}
    assert found == OLD


def test_every_article_and_every_cent_is_kept(old: Path) -> None:
    assert len(tool.migrate(old)) == 1
    assert ask(old, "SELECT id, sku, name, price_cents, currency FROM articles ORDER BY id") == [
        (1, "A-1", "washer", 29, "EUR"),
        (2, "A-2", "wrench", 115, "EUR"),
        (9, "A-9", "pump", 123456, "EUR"),
        (10, "B", "pin", 7, "EUR"),
    ]
    assert {kind for (kind,) in ask(old, "SELECT typeof(price_cents) FROM articles")} == {"integer"}


def test_stock_moves_are_kept_and_still_belong_to_articles(old: Path) -> None:
    tool.migrate(old)
    assert ask(old, "SELECT * FROM stock_moves ORDER BY id") == MOVES
    assert ask(old, "PRAGMA foreign_key_check") == []
    assert [row[2] for row in ask(old, "PRAGMA foreign_key_list(stock_moves)")] == ["articles"]


def test_a_sku_is_still_unique(old: Path) -> None:
    tool.migrate(old)
    with closing(sqlite3.connect(old)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT INTO articles (sku, name, price_cents) VALUES ('A-1', 'copy', 1)")


def test_the_second_run_does_nothing(old: Path) -> None:
    tool.migrate(old)
    assert tool.migrate(old) == []


def test_a_new_database_has_the_new_columns(tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    assert len(tool.migrate(database)) == 3
    columns = {row[1]: (row[2], row[3]) for row in ask(database, "PRAGMA table_info(articles)")}
    assert columns["price_cents"] == ("INTEGER", 1)
    assert columns["currency"] == ("TEXT", 1)
    assert "price" not in columns
