"""A release that awaits a sign-off: made once, and laid out anew for every test."""

import shutil
from pathlib import Path

import pytest

from passgate.tasks.history.run_store import RunStore
from tests.repositories import GitRepository
from tests.signing import a_run_that_awaits, write_gate


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
def project(releases: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """The release as the working folder. A plan knows its folder, so it always lies at the same place."""
    project = releases / "project"
    shutil.rmtree(project)
    shutil.copytree(releases / "awaiting", project)
    _clear(monkeypatch)
    monkeypatch.chdir(project)
    return GitRepository(project)


@pytest.fixture
def run(project: GitRepository) -> RunStore:
    return RunStore.of(next((project.path / ".passgate/runs").iterdir()).name)
