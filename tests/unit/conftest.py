"""What the tests of several rooms need."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from passgate.tasks.sandboxes.isolation import Bubblewrap, best_isolation

NO_BUBBLEWRAP = "bubblewrap does not work on this machine"


@pytest.fixture(scope="session")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> bool:
    return isinstance(best_isolation([], run_folder=tmp_path_factory.mktemp("probe").resolve()), Bubblewrap)


@pytest.fixture
def needs_bubblewrap(bubblewrap_works: bool) -> None:
    if not bubblewrap_works:
        pytest.skip(NO_BUBBLEWRAP)


@pytest.fixture
def without_bubblewrap(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bubblewrap is there and does not work, as in many containers."""
    folder: Path = tmp_path_factory.mktemp("bin")
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
