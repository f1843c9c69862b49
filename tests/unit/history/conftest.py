"""What tests of histories at several places need."""

from pathlib import Path

import pytest

from passgate.tasks.history.dataset import History
from tests.object_store import object_store

__all__ = ["object_store"]


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """A history in the folder of the test, which is the working folder too."""
    monkeypatch.chdir(tmp_path)
    return History(str(tmp_path))
