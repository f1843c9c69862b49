"""The repository that changes of a gate are made in."""

from pathlib import Path

import pytest

from tests.repositories import GitRepository
from tests.unit.changes import gate_on_main


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A gate with one task on main; the branch `change` is checked out, and the repository is the working folder."""
    return gate_on_main(tmp_path / "repository", monkeypatch)
