"""A small repository of its own for every test that needs one, and one real Prefect server for all of them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

from passgate.flows.embedded.schema import make_database
from passgate.tasks.integrity.git import BRANCH_VARIABLES, TARGET_COMMIT_VARIABLES, TARGET_VARIABLES
from tests.upstream import ScriptedUpstream

REPOSITORY = Path(__file__).parent.parent
START_SECONDS = 120
PATIENT = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "240"}
"""A busy machine takes longer to start Prefect than a run waits by default."""
# A busy machine takes its time. The profile that this one begins with depends on CI, which goes next.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
for _name in ("CI", *TARGET_VARIABLES, *TARGET_COMMIT_VARIABLES, *BRANCH_VARIABLES):
    # Tests are the same everywhere; those that mean a CI system set what it sets.
    os.environ.pop(_name, None)
_CLEAN = ("GITHUB_", "CI_", "BUILDKITE", "PASSGATE_", "PREFECT_")


def clean_environment() -> dict[str, str]:
    """This environment without what a CI system or a developer's shell may have put into it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_CLEAN) and name not in {"CI", "BRANCH_NAME", "COLUMNS", "NO_COLOR"}
    }


@dataclass
class Project:
    """A folder with suites and a gates file, and the `passgate` command in it."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "passgate", *arguments]

    def full_environment(self, **extra: str) -> dict[str, str]:
        return {**clean_environment(), "COLUMNS": "120", **self.environment, **extra}

    def passgate(self, *arguments: str, timeout: float = 120, **extra: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments), timeout=timeout, **extra)

    def run(
        self, command: Sequence[str], *, timeout: float = 120, stdout: int = subprocess.PIPE, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Any command in the folder, with more of the environment."""
        return subprocess.run(
            command,
            cwd=self.path,
            env=self.full_environment(**extra),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
        )

    def git(self, *arguments: str, **environment: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        result = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout.strip()

    def run_folders(self) -> list[Path]:
        return sorted((self.path / ".passgate" / "runs").iterdir())


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
    """A real Prefect server with a database of its own, on a free port unless one is given."""
    port = port or free_port()
    environment = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
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
        _wait_until(lambda: httpx.get(f"{environment['PREFECT_API_URL']}/health").status_code == 200)
        yield PrefectServer(environment, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a real Prefect server on the loopback."""
    with started_server(tmp_path_factory.mktemp("prefect")) as server:
        yield server.environment


def _wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise TimeoutError("the Prefect server did not start")


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    """A provider that answers every call; `upstream.says(...)` or `upstream.script` tells it what."""
    with ScriptedUpstream() as provider:
        yield provider


@pytest.fixture
def bare_project(tmp_path: Path) -> Project:
    """An empty repository on the branch main, without Prefect."""
    project = Project(tmp_path / "repository")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    project.git("commit", "-q", "--allow-empty", "-m", "Begin")
    return project


@pytest.fixture
def project(bare_project: Project, prefect_server: dict[str, str]) -> Project:
    """A repository with the gates that `passgate init` writes, and a Prefect server."""
    bare_project.environment = dict(prefect_server)
    bare_project.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
    return bare_project
