"""A release that awaits a sign-off: made once, and laid out anew for every test."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from passgate.tasks.history.run_store import RunStore
from tests.repositories import GitRepository
from tests.signing import a_run_that_awaits, write_gate

LayOut = Callable[[str], Path]


def _clear(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_STEP_SUMMARY", "SECRET_WORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the release."""
    folder = tmp_path_factory.mktemp("releases")
    project = folder / "project"
    with pytest.MonkeyPatch.context() as monkeypatch:
        _clear(monkeypatch)
        repository = GitRepository(project)
        monkeypatch.chdir(project)
        repository.write(".gitignore", ".passgate/\n")
        write_gate(project)
        repository.commit()
        a_run_that_awaits()
        shutil.copytree(project, folder / "awaiting")
    return folder


@pytest.fixture
def lay_out(releases: Path, monkeypatch: pytest.MonkeyPatch) -> LayOut:
    """Makes one of the releases the working folder. A plan knows its folder, so both lie at the same place."""

    def _lay_out(name: str) -> Path:
        project = releases / "project"
        shutil.rmtree(project)
        shutil.copytree(releases / name, project)
        _clear(monkeypatch)
        monkeypatch.chdir(project)
        return project

    return _lay_out


@pytest.fixture
def project(lay_out: LayOut) -> GitRepository:
    return GitRepository(lay_out("awaiting"))


@pytest.fixture
def run(project: GitRepository) -> RunStore:
    return RunStore.of(next((project.path / ".passgate/runs").iterdir()).name)
