"""What tests of histories at several places need."""

import threading
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


@pytest.fixture
def renewed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits in a thread for what is due after a while looks again at once: leases are renewed all the time."""
    real = threading.Event.wait
    monkeypatch.setattr(
        threading.Event, "wait", lambda event, timeout=None: real(event, timeout and min(timeout, 0.02))
    )
