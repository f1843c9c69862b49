"""Sandboxes with each way of isolation that this machine offers."""

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.conftest import NO_BUBBLEWRAP, OpenSandbox

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox
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
def describe(suites: Path) -> Callable[..., Path]:
    """Make a named sandbox: its files and its description."""

    def _describe(description: str | None = None, **files: str) -> Path:
        folder = suites / "_shared/sandboxes/notes"
        (folder / "files").mkdir(parents=True)
        for file, content in {"README.md": "hello\n", **files}.items():
            (folder / "files" / file).write_text(content)
        if description is not None:
            (folder / "sandbox.yaml").write_text(description)
        return folder / "files"

    return _describe


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


def hook(command: str, **more: object) -> dict[str, object]:
    """A hook of a workspace that is a command of a shell."""
    return {"command": ["sh", "-c", command], **more}


@pytest.fixture
def cannot_begin(workbench_of: Callable[..., Workbench]):
    """The first trial of a task and the second one are errors that say what is wrong; gives the run's warnings."""

    async def _cannot_begin(task: EvalTask, what: str) -> Sequence[str]:
        async with workbench_of() as workbench:
            for _ in range(2):
                with pytest.raises(MeasurementError, match=what):
                    async with workbench.sandbox(task):
                        pytest.fail("the trial must not begin")
        return workbench.warnings

    return _cannot_begin


async def sh(sandbox: TrialSandbox, command: str, **changes: object) -> str:
    """What a command prints that succeeds."""
    result = await sandbox.run(["sh", "-c", command], **{"seconds": 240, **changes})
    assert result.exit_code == 0, result.stderr
    return result.stdout


async def tries(sandbox: TrialSandbox, command: str, **changes: object) -> bool:
    """Whether a command succeeds."""
    result = await sandbox.run(["sh", "-c", command], **{"seconds": 240, **changes})
    return result.exit_code == 0


@pytest.fixture
async def sandbox(sandbox_of: OpenSandbox) -> AsyncIterator[TrialSandbox]:
    """The sandbox of a trial whose task asks for nothing. Name `isolation` before it where that matters."""
    async with sandbox_of() as opened:
        yield opened
