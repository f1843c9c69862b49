"""A small repository of its own for every test that needs one, and one real Prefect server for all of them."""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from passgate.flows.cli.engine import _SETTINGS as SETTINGS_OF_A_RUN
from passgate.tasks.integrity.checkout import BRANCH_VARIABLES, TARGET_COMMIT_VARIABLES, TARGET_VARIABLES
from tests import searches, warm
from tests.prefect_servers import shared_environment, start_shared_server
from tests.project import REPOSITORY, Project
from tests.scenarios import Make, Scenario, made
from tests.sharing import locked, made_once, shared_folder
from tests.upstream import ScriptedUpstream

__all__ = ["searches"]
for _name in ("CI", *TARGET_VARIABLES, *TARGET_COMMIT_VARIABLES, *BRANCH_VARIABLES):
    # Tests are the same everywhere; those that mean a CI system set what it sets.
    os.environ.pop(_name, None)


@pytest.fixture(scope="session", autouse=True)
def users_of_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file whose lock each process of these tests holds to its end: what they share lasts as long."""
    file = shared_folder(tmp_path_factory) / "users.lock"
    with locked(file, fcntl.LOCK_SH):
        yield file
    for server in warm.servers:
        server.stop()


@pytest.fixture(autouse=True)
def _start_of_commands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("cold"):
        monkeypatch.setattr(warm, "servers", [])


@pytest.fixture(scope="session")
def prefect_server(users_of_servers: Path) -> dict[str, str]:
    """The environment of a real Prefect server on the loopback, the same for all processes of these tests."""
    folder = made_once(users_of_servers.parent / "prefect", lambda made: start_shared_server(made, users_of_servers))
    environment = shared_environment(folder)
    commands = warm.WarmServer(warm.PASSGATE_IN_PREFECT, environment, reads=("PREFECT_",), also=SETTINGS_OF_A_RUN)
    warm.servers.insert(0, commands)
    return environment


@pytest.fixture(scope="session")
def scenario(users_of_servers: Path) -> Callable[[Make], Scenario]:
    """Gives the scenario that a function of tests/scenarios/ makes."""
    return lambda make: made(users_of_servers.parent / "scenarios", make)


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
