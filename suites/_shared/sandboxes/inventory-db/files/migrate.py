"""Applies migrations: `python migrate.py DATABASE`."""

import sqlite3
import sys
from pathlib import Path

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(database: str | Path, migrations: Path = MIGRATIONS) -> list[str]:
    """Apply the migrations that the database does not have yet; return their names."""
    Path(database).parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE IF NOT EXISTS applied (name TEXT PRIMARY KEY)")
        known = {name for (name,) in connection.execute("SELECT name FROM applied")}
        new = [file for file in sorted(migrations.glob("*.sql")) if file.name not in known]
        for file in new:
            _apply(connection, file)
        return [file.name for file in new]
    finally:
        connection.close()


def _apply(connection: sqlite3.Connection, file: Path) -> None:
    note = f"INSERT INTO applied VALUES ('{file.name}');"
    try:
        connection.executescript(f"BEGIN;\n{file.read_text(encoding='utf-8')}\n{note}\nCOMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python migrate.py DATABASE")
    print("\n".join(f"applied {name}" for name in migrate(sys.argv[1])) or "nothing to do")
