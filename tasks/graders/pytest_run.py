"""Running pytest such that nothing in the workspace configures or shadows it.

Python starts isolated (`-I`): no `PYTHON*` variable, no user packages, no module of the working folder. The
workspace becomes importable in a `conftest.py` of our own, which is after pytest and its plugins have been
loaded: with pytest's `pythonpath` option the agent could leave a plugin there and pytest would load it.

What pytest imports runs in pytest's process. Code that sets out to can therefore forge a result from within;
a `command` that tests the work from outside, in a process of its own, is out of its reach.
"""

import secrets
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from xml.etree import ElementTree

from pydantic import ValidationError

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.static_analysis import REMEDY
from passgate.tasks.graders.texts import ending
from passgate.tasks.graders.workspace import UnusableFileError, read_text
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.sandbox import ProcessResult, Sandbox

PROBE_SECONDS: Final = 60.0
INTERNAL_ERROR: Final = 3
# A test during which the run is stopped stands in the report as if it had passed; only the count of those that
# came to their end tells.
_CONFTEST: Final = """\
import json
import pathlib
import sys

sys.path.insert(0, {workspace!r})
progress = {{"collected": None, "finished": 0}}


def pytest_collection_finish(session):
    progress["collected"] = len(session.items)


def pytest_runtest_logfinish():
    progress["finished"] += 1


def pytest_sessionfinish():
    pathlib.Path({progress!r}).write_text(json.dumps(progress))
"""


class CaseStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Case(NamedTuple):
    """One test that ran."""

    file: str
    """Relative to the folder of the tests."""
    group: str
    """The classes that it lies in, joined with `::`; empty for a function of a module."""
    name: str
    """With the parameters in brackets, where it has some."""
    status: CaseStatus
    message: str

    @property
    def label(self) -> str:
        return "::".join(part for part in (self.file, self.group, self.name) if part)

    def is_called(self, wanted: str) -> bool:
        """Whether a name means this test: its file, its function, or both joined with `::`."""
        files = {self.file, PurePosixPath(self.file).name}
        functions = {self.name, self.name.partition("[")[0]}
        if self.group:
            functions |= {f"{self.group}::{function}" for function in functions}
        return wanted in files | functions | {f"{file}::{name}" for file in files for name in functions}


def read_report(folder: Path, name: str) -> tuple[Case, ...]:
    """The tests in a report of the `xunit1` family.

    Raises `UnusableFileError` when there is none, when it is too large, or is not such a report.
    """
    text = read_text(folder, name)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UnusableFileError("the report declares entities")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - without entities there is nothing to blow up
    except ElementTree.ParseError as error:
        raise UnusableFileError(f"the report is not XML: {error}") from None
    return tuple(_case(element) for element in root.iter("testcase"))


def _case(element: ElementTree.Element) -> Case:
    file = element.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    group = element.get("classname", "").removeprefix(module).strip(".").replace(".", "::")
    status, message = _status(element)
    return Case(file.removeprefix("tests/"), group, element.get("name", ""), status, message)


def _status(element: ElementTree.Element) -> tuple[CaseStatus, str]:
    for tag, status in (
        ("error", CaseStatus.FAILED),
        ("failure", CaseStatus.FAILED),
        ("skipped", CaseStatus.SKIPPED),
    ):
        detail = element.find(tag)
        if detail is not None:
            return status, _message(detail)
    return CaseStatus.PASSED, ""


def _message(detail: ElementTree.Element) -> str:
    message, text = detail.get("message", ""), detail.text or ""
    # For a file that cannot be imported the message says no more than that, the text says why.
    return ending(text) if message in {"", "collection failure", "internal error"} else message


class PytestProgress(Frozen):
    """How far a run got."""

    collected: int | None = None
    """How many tests there were to run; `None` when the run ended before that was known."""
    finished: int = 0
    """How many came to their end."""


@dataclass(frozen=True)
class PytestFolder:
    """A folder for one run: `tests` in it holds the tests, the rest is ours."""

    root: Path
    report: str
    progress_file: str

    @property
    def tests(self) -> Path:
        return self.root / "tests"

    def progress(self) -> PytestProgress:
        """How far the run got; nothing at all when it did not get as far as to say."""
        try:
            return PytestProgress.model_validate_json(read_text(self.root, self.progress_file))
        except (UnusableFileError, ValidationError):
            return PytestProgress()


def prepare(root: Path, workspace: Path) -> PytestFolder:
    """Make a fresh folder ready for a run that tests this workspace."""
    folder = PytestFolder(
        root=root, report=f"{secrets.token_hex(16)}.xml", progress_file=f"{secrets.token_hex(16)}.json"
    )
    folder.tests.mkdir()
    (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    conftest = _CONFTEST.format(workspace=str(workspace), progress=str(root / folder.progress_file))
    (root / "conftest.py").write_text(conftest, encoding="utf-8")
    return folder


async def run_pytest(sandbox: Sandbox, folder: PytestFolder, seconds: float) -> ProcessResult:
    """Run the tests of a folder in the sandbox's workspace."""
    return await sandbox.run(_command(folder), seconds=seconds, environment=environment(folder.tests))


def environment(tests: Path) -> dict[str, str]:
    """What tests find in their environment."""
    return {"PYTHONDONTWRITEBYTECODE": "1", "PASSGATE_TESTS": str(tests)}


def _command(folder: PytestFolder) -> list[str]:
    return [
        sys.executable,
        *("-I", "-B", "-m", "pytest"),
        *("-c", str(folder.root / "pytest.ini")),
        f"--rootdir={folder.root}",
        f"--confcutdir={folder.root}",
        *("-p", "no:cacheprovider"),
        # The older family names the file of each test.
        *("-o", "junit_family=xunit1"),
        f"--junitxml={folder.root / folder.report}",
        *("--tb=short", "--color=no"),
        str(folder.tests),
    ]


async def require_working_pytest(sandbox: Sandbox, folder: PytestFolder) -> None:
    """Run a test of our own, with none of the agent's code. `folder` is prepared and has no tests.

    Raises `MeasurementError` when it does not pass: then what went wrong before was no fault of the agent.
    """
    (folder.tests / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    (folder.root / "conftest.py").unlink()
    result = await run_pytest(sandbox, folder, PROBE_SECONDS)
    if "No module named pytest" in result.stderr:
        raise MeasurementError(f"pytest is not installed: {REMEDY}")
    if result.exit_code != 0:
        said = ending(result.stderr) or ending(result.stdout)
        raise MeasurementError(f"pytest does not work here (exit code {result.exit_code}): {said}")
