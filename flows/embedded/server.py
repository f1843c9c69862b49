"""Serve Prefect's API in a thread of this process, on a database that is made from a snapshot of its schema.

Prefect's hundred migrations take ten seconds. `python -m passgate.flows.embedded.server` writes the snapshot from the
installed Prefect.
"""

import asyncio
import os
import re
import socket
import sqlite3
import tempfile
import threading
from concurrent.futures import Future
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).parent / "schema.sql"
_HEAD = re.compile(r"INSERT INTO alembic_version VALUES \('(\w+)'\);")
_REVISION = re.compile(r"^(down_revision|revision)\b[^=]*=\s*(.*)$", re.MULTILINE)
_SQLITE = "sqlite+aiosqlite:///"
_POLL_SECONDS = 0.02
_SECONDS_TO_STOP = 20.0  # On a busy machine it takes that long to store what is in memory


class EmbeddedServer:
    """Serves Prefect's API on a free port of the loopback from `start` until `stop`."""

    def __init__(self) -> None:
        self._url: Future[str] = Future()
        self._server: Any = None
        self._thread = threading.Thread(target=self._serve, name="prefect-server", daemon=True)

    def start(self) -> "Future[str]":
        """Start to serve. The future receives the URL of the API when it answers, or the error."""
        self._thread.start()
        return self._url

    def stop(self) -> None:
        """Stop, and wait until the server has stored its data, at most `_SECONDS_TO_STOP`."""
        self.end()
        if self._server is not None:
            self._thread.join(_SECONDS_TO_STOP)

    def end(self) -> None:
        """Tell the server to stop, without waiting."""
        if self._server is not None:
            self._server.should_exit = True

    def _serve(self) -> None:
        try:
            asyncio.run(self._serve_api())
        except BaseException as error:  # noqa: BLE001 - uvicorn raises SystemExit too, and it ends nothing but this
            if not self._url.done():
                self._url.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))

    async def _serve_api(self) -> None:
        import uvicorn
        from prefect.server.api.server import create_app
        from prefect.settings import temporary_settings

        with temporary_settings(_settings()), socket.create_server(("127.0.0.1", 0)) as listener:
            app = create_app(ephemeral=True)
            config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=2)
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(_POLL_SECONDS)
            if server.started:
                self._server = server
                self._url.set_result(f"http://127.0.0.1:{listener.getsockname()[1]}/api")
            await serving
        if not self._url.done():
            raise RuntimeError("its API does not start")


def _settings() -> dict[Any, Any]:
    """Return the server's settings: no block registration, and no migrations if the database is up to date."""
    from prefect.settings import (
        PREFECT_API_BLOCKS_REGISTER_ON_START,
        PREFECT_API_DATABASE_CONNECTION_URL,
        PREFECT_API_DATABASE_MIGRATE_ON_START,
        PREFECT_HOME,
    )

    url, home = str(PREFECT_API_DATABASE_CONNECTION_URL.value()), Path(PREFECT_HOME.value())
    settings: dict[Any, Any] = {PREFECT_API_BLOCKS_REGISTER_ON_START: False}
    database = Path(url.removeprefix(_SQLITE))
    is_file = url.startswith(_SQLITE) and ":memory:" not in url and "?" not in url
    if "?" in str(home) and url.startswith(f"{_SQLITE}{home}"):
        # Prefect would take the rest of the path for options and create the database beside its home.
        settings[PREFECT_API_DATABASE_CONNECTION_URL] = f"{_SQLITE}{database.as_uri()}?uri=true"
        is_file = True
    is_current = False
    if is_file:
        with suppress(OSError, sqlite3.Error):
            is_current = make_database(database)
    return {**settings, PREFECT_API_DATABASE_MIGRATE_ON_START: not is_current}


def make_database(database: Path) -> bool:
    """Create Prefect's database unless it exists. Return if it has the installed Prefect's schema. Raise `OSError`."""
    head = installed_head()
    if not database.exists() and head == snapshot_head():
        database.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=database.parent, prefix=".passgate-") as folder:
            unfinished = Path(folder) / database.name
            with closing(sqlite3.connect(unfinished)) as connection:
                # Nothing can be lost before the file is linked.
                connection.execute("PRAGMA synchronous = OFF")
                connection.executescript(SNAPSHOT.read_text(encoding="utf-8"))
            with suppress(FileExistsError):
                os.link(unfinished, database)
    return database.exists() and head is not None and head == _database_head(database)


def snapshot_head() -> str | None:
    """Return the last migration of the snapshot."""
    found = _HEAD.search(SNAPSHOT.read_text(encoding="utf-8"))
    return found[1] if found else None


def installed_head() -> str | None:
    """Return the last migration of the installed Prefect, without importing it; `None` without a single one."""
    prefect = find_spec("prefect")
    if prefect is None or prefect.origin is None:
        return None
    revisions, before = set[str](), set[str]()
    for file in Path(prefect.origin).parent.glob("server/database/_migrations/versions/sqlite/*.py"):
        for name, value in _REVISION.findall(file.read_text(encoding="utf-8")):
            (revisions if name == "revision" else before).update(re.findall(r"[\"'](\w+)[\"']", value))
    heads = revisions - before
    return heads.pop() if len(heads) == 1 else None


def _database_head(database: Path) -> str | None:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:  # another process is migrating it
            return None
    return str(row[0]) if row else None


def write_snapshot() -> None:
    """Let Prefect migrate an empty database, and write its tables, indexes and last migration to the snapshot."""
    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, temporary_settings

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prefect.db"
        with temporary_settings({PREFECT_API_DATABASE_CONNECTION_URL: f"{_SQLITE}{file}"}):
            from prefect.server.database import provide_database_interface

            asyncio.run(provide_database_interface().create_db())
        with closing(sqlite3.connect(file)) as connection:
            statements = connection.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
            ).fetchall()
        version = f"INSERT INTO alembic_version VALUES ('{_database_head(file)}')"  # noqa: S608 - of Prefect's own files
        lines = ["PRAGMA journal_mode = WAL", "BEGIN", *(sql.strip() for (sql,) in statements), version, "COMMIT"]
        SNAPSHOT.write_text("".join(f"{line};\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    write_snapshot()
