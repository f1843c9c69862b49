"""Workbenches with each way of isolation that this machine offers."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.conftest import NO_BUBBLEWRAP

from passgate.tasks.sandboxes.workbench import Workbench


@pytest.fixture(params=["bubblewrap", "process_group"])
def isolation(request: pytest.FixtureRequest, bubblewrap_works: bool) -> str:
    """The name of the isolation that workbenches of the test have."""
    if request.param == "process_group":
        request.getfixturevalue("without_bubblewrap")
    elif not bubblewrap_works:
        pytest.skip(NO_BUBBLEWRAP)
    return str(request.param)


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
def describe(suites: Path) -> Callable[..., Path]:
    """Make a named sandbox: its files and its description."""

    def _describe(name: str = "notes", description: str | None = None, **files: str) -> Path:
        folder = suites / "_shared/sandboxes" / name
        for file, content in {"README.md": "hello\n", **files}.items():
            path = folder / "files" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if description is not None:
            (folder / "sandbox.yaml").write_text(description)
        return folder

    return _describe


@pytest.fixture
def workbench_of(suites: Path) -> Callable[..., Workbench]:
    def _workbench(**changes: object) -> Workbench:
        return Workbench(suites, **{"processes": 4, **changes})

    return _workbench


async def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        await asyncio.sleep(0.02)
    return condition()


def marked(word: str) -> list[int]:
    """The processes that have a word on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_in(temporary: Path) -> list[Path]:
    """The folders of workbenches in a temporary folder."""
    return list(temporary.glob("*/*"))
