"""Create Prefect's database from a snapshot of its schema, because Prefect's hundred migrations take ten seconds.

`python -m passgate.flows.embedded.schema` writes the snapshot from the installed Prefect.
"""

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

SNAPSHOT = Path(__file__).parent / "schema.sql"
_HEAD = re.compile(r"INSERT INTO alembic_version VALUES \('(\w+)'\);")
_REVISION = re.compile(r"^(down_revision|revision)\b[^=]*=\s*(.*)$", re.MULTILINE)


def make_database(database: Path) -> bool:
    """Create Prefect's database if it does not exist. Return whether it has the schema of the installed Prefect.

    Raise `OSError` or `sqlite3.Error` if it cannot be created or read.
    """
    head = installed_head()
    if not database.exists() and head == snapshot_head():
        _make(database)
    return database.exists() and head is not None and head == _database_head(database)


def snapshot_head() -> str | None:
    """Return the last migration of the snapshot."""
    found = _HEAD.search(SNAPSHOT.read_text(encoding="utf-8"))
    return found[1] if found else None


def installed_head() -> str | None:
    """Return the last migration of the installed Prefect without importing it, or `None` if it is not found."""
    prefect = find_spec("prefect")
    if prefect is None or prefect.origin is None:
        return None
    files = Path(prefect.origin).parent.glob("server/database/_migrations/versions/sqlite/*.py")
    return _last(file.read_text(encoding="utf-8") for file in files)


def _last(migrations: Iterable[str]) -> str | None:
    """Return the migration that no other one follows, or `None` if there are several."""
    revisions, before = set[str](), set[str]()
    for text in migrations:
        for name, value in _REVISION.findall(text):
            (revisions if name == "revision" else before).update(re.findall(r"[\"'](\w+)[\"']", value))
    heads = revisions - before
    return heads.pop() if len(heads) == 1 else None


def _make(database: Path) -> None:
    """Create the database atomically: of two runs that start at once, the first to link its file wins."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=".passgate-") as folder:
        unfinished = Path(folder) / database.name
        with closing(sqlite3.connect(unfinished)) as connection:
            # Nothing can be lost before the file is linked.
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(SNAPSHOT.read_text(encoding="utf-8"))
        with suppress(FileExistsError):
            os.link(unfinished, database)


def _database_head(database: Path) -> str | None:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:  # another process is migrating it
            return None
    return str(row[0]) if row else None


def write_snapshot() -> None:
    """Let Prefect migrate an empty database, and write its schema to the snapshot."""
    import asyncio

    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, temporary_settings

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prefect.db"
        url = f"sqlite+aiosqlite:///{file}"
        with temporary_settings({PREFECT_API_DATABASE_CONNECTION_URL: url}):
            from prefect.server.database import provide_database_interface

            asyncio.run(provide_database_interface().create_db())
        SNAPSHOT.write_text(_dump(file), encoding="utf-8")


def _dump(database: Path) -> str:
    """Return the SQL that creates every table and index, and the last migration. Migrations insert no other rows."""
    with closing(sqlite3.connect(database)) as connection:
        statements = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
    version = f"INSERT INTO alembic_version VALUES ('{_database_head(database)}')"  # noqa: S608 - of Prefect's own files
    lines = ["PRAGMA journal_mode = WAL", "BEGIN", *(sql.strip() for (sql,) in statements), version, "COMMIT"]
    return "".join(f"{line};\n" for line in lines)


if __name__ == "__main__":
    write_snapshot()
