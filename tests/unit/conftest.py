"""What the tests of several rooms need."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def without_bubblewrap(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bubblewrap is there and does not work, as in many containers."""
    folder: Path = tmp_path_factory.mktemp("bin")
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
