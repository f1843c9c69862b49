"""Real Prefect servers on the loopback: one for all tests, and others for tests that disturb theirs."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from passgate.flows.embedded.server import make_database
from tests.project import clean_environment
from tests.sharing import locked
from tests.waiting import LIMIT, wait_until

PATIENT = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "240", "PREFECT_API_REQUEST_TIMEOUT": "240"}
"""On a busy machine Prefect takes longer to start, and to answer, than a run waits by default."""
_ENVIRONMENT = "environment.json"


@dataclass(frozen=True)
class PrefectServer:
    """A real Prefect server on the loopback."""

    environment: dict[str, str]
    """What makes it the server of a command."""
    process_id: int
    """Of its process and of its process group."""


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def started_server(home: Path, port: int | None = None, **settings: str) -> Iterator[PrefectServer]:
    """A Prefect server with a database of its own, on a free port unless one is given."""
    port = port or free_port()
    environment = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        # What tests wait for: a worker looks for flow runs, and the server for slots that nobody holds any more.
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_SERVER_SERVICES_REPOSSESSOR_LOOP_SECONDS": "1",
        "DO_NOT_TRACK": "1",
        **PATIENT,
        **settings,
    }
    # Prefect's own migrations take long on a busy machine.
    make_database(home / "prefect.db")
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        env={**clean_environment(), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: _is_up(environment["PREFECT_API_URL"]))
        yield PrefectServer(environment, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=LIMIT)


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def start_shared_server(folder: Path, users: Path) -> None:
    """Start a server in a process of its own, which ends when nobody holds the lock of the file `users` any more."""
    with (folder / "errors.log").open("w") as messages:
        subprocess.run(
            [sys.executable, "-m", "tests.prefect_servers", str(folder), str(users)],
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            start_new_session=True,
            check=True,
        )
    wait_until((folder / _ENVIRONMENT).exists)


def shared_environment(folder: Path) -> dict[str, str]:
    """What makes the shared server the server of a command."""
    environment: dict[str, str] = json.loads((folder / _ENVIRONMENT).read_text())
    return environment


def _serve(folder: Path, users: Path) -> None:
    with started_server(folder / "home") as server:
        written = folder / "environment.new"
        written.write_text(json.dumps(server.environment))
        written.rename(folder / _ENVIRONMENT)
        with locked(users, fcntl.LOCK_EX):
            pass


if __name__ == "__main__" and os.fork() == 0:
    _serve(*map(Path, sys.argv[1:]))
