"""The schema of Prefect's database, made from a snapshot: its own hundred migrations take ten seconds.

`python -m passgate.flows.embedded.schema` writes the snapshot anew, from the Prefect that is installed.
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
    """Make Prefect's database, unless it is there; whether its schema is that of the installed Prefect, so that Prefect
    need not migrate it.

    Raises `OSError` or `sqlite3.Error` where it cannot be made or read.
    """
    head = installed_head()
    if not database.exists() and head == snapshot_head():
        _make(database)
    return database.exists() and head is not None and head == _head_of(database)


def snapshot_head() -> str | None:
    """The migration that the snapshot ends with."""
    found = _HEAD.search(SNAPSHOT.read_text(encoding="utf-8"))
    return found[1] if found else None


def installed_head() -> str | None:
    """The last migration of the installed Prefect; `None` where it is not found. Prefect itself is not imported."""
    prefect = find_spec("prefect")
    if prefect is None or prefect.origin is None:
        return None
    files = Path(prefect.origin).parent.glob("server/database/_migrations/versions/sqlite/*.py")
    return _last(file.read_text(encoding="utf-8") for file in files)


def _last(migrations: Iterable[str]) -> str | None:
    """The one migration that no other one comes after."""
    revisions, before = set[str](), set[str]()
    for text in migrations:
        for name, value in _REVISION.findall(text):
            (revisions if name == "revision" else before).update(re.findall(r"[\"'](\w+)[\"']", value))
    heads = revisions - before
    return heads.pop() if len(heads) == 1 else None


def _make(database: Path) -> None:
    """Two runs may begin at once: each makes a file of its own, and the first one to link it has made the database."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=".passgate-") as folder:
        unfinished = Path(folder) / database.name
        with closing(sqlite3.connect(unfinished)) as connection:
            # Until it is linked nobody has anything to lose with it.
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(SNAPSHOT.read_text(encoding="utf-8"))
        with suppress(FileExistsError):
            os.link(unfinished, database)


def _head_of(database: Path) -> str | None:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:  # somebody is making it by migrations
            return None
    return str(row[0]) if row else None


def write_snapshot() -> None:
    """Have Prefect migrate an empty database, and write what its schema is then."""
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
    """Every table and index in the order of their creation, and the last migration: the migrations insert no rows."""
    with closing(sqlite3.connect(database)) as connection:
        statements = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
    version = f"INSERT INTO alembic_version VALUES ('{_head_of(database)}')"  # noqa: S608 - of Prefect's own files
    lines = ["PRAGMA journal_mode = WAL", "BEGIN", *(sql.strip() for (sql,) in statements), version, "COMMIT"]
    return "".join(f"{line};\n" for line in lines)


if __name__ == "__main__":
    write_snapshot()
