"""A PostgreSQL of a test's own, as Debian packages it."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.prefect_servers import free_port
from tests.waiting import LIMIT, wait_until

_USER = "postgres"


def program(name: str) -> str:
    """The path of a program of PostgreSQL, which Debian keeps out of PATH; skips the test where there is none."""
    found = shutil.which(name) or next(iter(sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))), None)
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    return found


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of an empty database, as Prefect's server takes it, while the context lasts."""
    initdb, postgres, pg_isready = (program(name) for name in ("initdb", "postgres", "pg_isready"))
    # It refuses to run as root, and its user may not enter the folders of pytest.
    owner = {"user": _USER, "group": _USER} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        if owner:
            shutil.chown(folder, **owner)
        data, port = f"{folder}/data", free_port()
        plain: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **owner}
        made = [initdb, "--pgdata", data, "--auth", "trust", "--username", "prefect", "--no-sync"]
        subprocess.run(made, check=True, **plain)
        settings = ("listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "fsync=off")
        started = [postgres, "-D", data, *(word for setting in settings for word in ("-c", setting))]
        server = subprocess.Popen(started, **plain)
        try:
            ready = [pg_isready, "--host", "127.0.0.1", "--port", str(port)]
            wait_until(lambda: subprocess.run(ready, stdout=subprocess.DEVNULL, check=False).returncode == 0)
            yield f"postgresql+asyncpg://prefect@127.0.0.1:{port}/postgres"
        finally:
            # At once: the connections of others may still be open.
            server.send_signal(signal.SIGINT)
            server.wait(timeout=LIMIT)
