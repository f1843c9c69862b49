"""What is made once in a run of the tests and used by all of its processes."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(temporary: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run of the tests, which all of its processes have."""
    own = temporary.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def locked(file: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock, which ends with the process that holds it."""
    with file.open("a") as held:
        fcntl.flock(held, kind)
        yield


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled for whoever came first. The others wait for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            folder.mkdir()
            try:
                make(folder)
            except BaseException:
                folder.rename(folder.with_suffix(".failed"))
                raise
    return folder
