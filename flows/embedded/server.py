"""Serve Prefect's API in a thread of this process."""

import asyncio
import socket
import sqlite3
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from passgate.flows.embedded.schema import make_database

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
    database = _database_file(url)
    if "?" in str(home) and url.startswith(f"{_SQLITE}{home}"):
        # Prefect would take the rest of the path for options and create the database beside its home.
        database = Path(url.removeprefix(_SQLITE))
        settings[PREFECT_API_DATABASE_CONNECTION_URL] = f"{_SQLITE}{database.as_uri()}?uri=true"
    return {**settings, PREFECT_API_DATABASE_MIGRATE_ON_START: database is None or not _is_current(database)}


def _database_file(url: str) -> Path | None:
    """Return the file of a database URL, or `None` if it has no file or has options."""
    if not url.startswith(_SQLITE) or ":memory:" in url or "?" in url:
        return None
    return Path(url.removeprefix(_SQLITE))


def _is_current(database: Path) -> bool:
    """Return whether a database needs no migrations of the installed Prefect. Create it if it does not exist."""
    try:
        return make_database(database)
    except (OSError, sqlite3.Error):
        return False
