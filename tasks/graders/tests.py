"""Test files put beside the agent's work after it has finished, then run.

Nothing in the workspace configures or shadows pytest: Python starts isolated (`-I`), without `PYTHON*` variables, user
packages and modules of the working folder. The workspace becomes importable in a `conftest.py` of our own, which is
after pytest and its plugins have been loaded: with pytest's `pythonpath` option the agent could leave a plugin there
and pytest would load it.

What pytest imports runs in pytest's process. Code that sets out to can therefore forge a result from within;
a `command` that tests the work from outside, in a process of its own, is out of its reach.
"""

import asyncio
import secrets
import shlex
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from xml.etree import ElementTree

from pydantic import ValidationError

from passgate.tasks.errors import MeasurementError, Quote, Raw
from passgate.tasks.files.temporary import new_folder
from passgate.tasks.graders.evidence import Evidence, checks_grade
from passgate.tasks.graders.static_analysis import REMEDY
from passgate.tasks.graders.workspace import UnusableFileError, read_text, run_shell
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import DeterministicTests
from passgate.tasks.model.quotes import quote_end, raw
from passgate.tasks.model.sandbox import ProcessResult, Sandbox

MOST_CHECKS: Final = 20
PROBE_SECONDS: Final = 60.0
INTERNAL_ERROR: Final = 3  # The exit code of pytest for an error of its own
# A test during which the run is stopped stands in the report as if it had passed; only the count of those that
# came to their end tells.
_CONFTEST: Final = """\
import json
import pathlib
import sys

sys.path.insert(0, {workspace!r})
progress = {{"collected": None, "finished": 0, "marked": []}}
SKIPS = {{"skip", "skipif"}}


def pytest_collection_finish(session):
    progress["collected"] = len(session.items)
    progress["marked"] = [item.nodeid.removeprefix("tests/") for item in session.items if is_marked(item)]


def is_marked(item):
    # A class of unittest has its own mark: one on its base class is not the author's.
    in_class = vars(item.cls) if getattr(item, "cls", None) else {{}}
    in_unittest = in_class.get("__unittest_skip__") or getattr(getattr(item, "obj", None), "__unittest_skip__", False)
    return bool(in_unittest or SKIPS & {{mark.name for mark in item.iter_markers()}})


def pytest_runtest_logfinish():
    progress["finished"] += 1


def pytest_sessionfinish():
    pathlib.Path({progress!r}).write_text(json.dumps(progress))
"""


class CaseStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


_STATUS_OF_TAG: Final = {"error": CaseStatus.FAILED, "failure": CaseStatus.FAILED, "skipped": CaseStatus.SKIPPED}


class Case(NamedTuple):
    """One test that ran."""

    file: str  # Relative to the folder of the tests
    group: str  # The classes that it lies in, joined with `::`; empty for a function of a module
    name: str  # With the parameters in brackets, where it has some
    status: CaseStatus
    message: Raw

    @property
    def label(self) -> str:
        return "::".join(part for part in (self.file, self.group, self.name) if part)

    def is_called(self, wanted: str) -> bool:
        """Return whether a name means this test: its file, its function, or both joined with `::`."""
        files = {self.file, PurePosixPath(self.file).name}
        functions = {self.name, self.name.partition("[")[0]}
        if self.group:
            functions |= {f"{self.group}::{function}" for function in functions}
        return wanted in files | functions | {f"{file}::{name}" for file in files for name in functions}


class _Progress(Frozen):
    """How far a run of pytest got."""

    collected: int | None = None
    """How many tests there were to run; `None` when the run ended before that was known."""
    finished: int = 0
    """How many came to their end."""
    marked: tuple[str, ...] = ()
    """The tests that a mark of their author may skip, as on another system. The agent's code has not run by then."""


class _PytestFolder(NamedTuple):
    """A folder for one run: `tests` in it holds the tests, the rest is ours."""

    root: Path
    tests: Path
    report: str
    progress: str


async def grade_tests(options: DeterministicTests, evidence: Evidence) -> RawGrade:
    """Run hidden tests against the workspace. All must pass. A test that is skipped has not passed, unless a
    mark of its own skips it: then it does not count. One that is expected to fail passes when it does.

    The score is the share of passed tests. A crash or a time-out of the tests is a fail: the code under test
    caused it. Raises `MeasurementError` when the tests are not there, hold no test, or cannot be run here.
    """
    async with _fresh_folder(evidence.sandbox) as place:
        folder = await asyncio.to_thread(_prepare, place, evidence.sandbox.workspace)
        await asyncio.to_thread(_copy_tests, options, evidence.suites_folder, folder.tests)
        if options.command is None:
            return await _grade_pytest(options, evidence.sandbox, folder)
        command = options.command.replace("{tests}", shlex.quote(str(folder.tests)))
        variables, seconds = _environment(folder.tests), options.timeout_seconds
        result = await run_shell(evidence.sandbox, command, seconds=seconds, environment=variables)
    if result.timed_out:
        return _hangs(options)
    said = "" if result.exit_code == 0 else raw(": ", quote_end(result.stdout + result.stderr))
    message = raw(f"the tests ended with exit code {result.exit_code}", said)
    return checks_grade(options, [RawCheck(passed=result.exit_code == 0, message=message)])


def _fresh_folder(sandbox: Sandbox) -> AbstractAsyncContextManager[Path]:
    # The name cannot be guessed: no process that the agent left behind waits there for the tests.
    return new_folder(sandbox.scratch, f"{secrets.token_hex(16)}-")


def _prepare(root: Path, workspace: Path) -> _PytestFolder:
    report, progress = f"{secrets.token_hex(16)}.xml", f"{secrets.token_hex(16)}.json"
    folder = _PytestFolder(root, root / "tests", report, progress)
    folder.tests.mkdir()
    # Without a configuration file of its own pytest would look for one in the folders above.
    (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    conftest = _CONFTEST.format(workspace=str(workspace), progress=str(root / folder.progress))
    (root / "conftest.py").write_text(conftest, encoding="utf-8")
    return folder


def _copy_tests(options: DeterministicTests, suites_folder: Path, target: Path) -> None:
    for relative in options.tests:
        source = suites_folder / relative
        if (target / source.name).exists():
            raise MeasurementError(f"{options.label}: two tests have the file name {source.name}: rename one")
        try:
            if source.is_dir():
                shutil.copytree(source, target / source.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target / source.name)
        except OSError as error:
            raise MeasurementError(f"{options.label}: {relative} cannot be copied: {error}") from error


def _environment(tests: Path) -> dict[str, str]:
    return {"PYTHONDONTWRITEBYTECODE": "1", "PASSGATE_TESTS": str(tests)}


def _hangs(options: DeterministicTests) -> RawGrade:
    message = f"the tests did not end within {options.timeout_seconds:g} seconds: the code under test hangs"
    return checks_grade(options, [RawCheck(passed=False, message=message)])


async def _grade_pytest(options: DeterministicTests, sandbox: Sandbox, folder: _PytestFolder) -> RawGrade:
    result = await _run_pytest(sandbox, folder, options.timeout_seconds)
    if result.timed_out:
        return _hangs(options)
    try:
        cases = await asyncio.to_thread(read_report, folder.root, folder.report)
    except UnusableFileError as error:
        await _require_working_pytest(sandbox)
        end = f"pytest ended with exit code {result.exit_code} and no usable report"
        said = quote_end(result.stderr) or quote_end(result.stdout) or str(error)
        message = raw(f"{end}: the code under test ended the process: ", said)
        return checks_grade(options, [RawCheck(passed=False, message=message)])
    is_internal = result.exit_code == INTERNAL_ERROR and any(case.label == "pytest::internal" for case in cases)
    # pytest also calls it an internal error when a module of the workspace ends the process as it is imported.
    if is_internal and str(sandbox.workspace) not in result.stdout:
        raise MeasurementError(raw("pytest failed to run: ", quote_end(result.stdout)))
    try:
        progress = _Progress.model_validate_json(read_text(folder.root, folder.progress))
    except (UnusableFileError, ValidationError):
        # The run did not get as far as to say.
        progress = _Progress()
    return _grade_cases(options, result, cases, progress)


async def _run_pytest(sandbox: Sandbox, folder: _PytestFolder, seconds: float) -> ProcessResult:
    command = [
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
    return await sandbox.run(command, seconds=seconds, environment=_environment(folder.tests))


async def _require_working_pytest(sandbox: Sandbox) -> None:
    """Run a test of our own, with none of the agent's code.

    Raises `MeasurementError` when it does not pass: then what went wrong before was no fault of the agent.
    """
    async with _fresh_folder(sandbox) as place:
        folder = await asyncio.to_thread(_prepare, place, sandbox.workspace)
        (folder.tests / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        # It would make the agent's modules importable.
        (folder.root / "conftest.py").unlink()
        result = await _run_pytest(sandbox, folder, PROBE_SECONDS)
    if "No module named pytest" in result.stderr:
        raise MeasurementError(f"pytest is not installed: {REMEDY}")
    if result.exit_code != 0:
        said = quote_end(result.stderr) or quote_end(result.stdout)
        raise MeasurementError(raw(f"pytest does not work here (exit code {result.exit_code}): ", said))


def read_report(folder: Path, name: str) -> tuple[Case, ...]:
    """Return the tests in a report of the `xunit1` family.

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
    status: CaseStatus = CaseStatus.PASSED
    message: Raw = ""
    for tag, bad in _STATUS_OF_TAG.items():
        detail = element.find(tag)
        if detail is not None and detail.get("type") != "pytest.xfail":
            status, message = bad, detail.get("message", "")
            # For a file that cannot be imported the message says no more than that, the text says why.
            if message in {"", "collection failure", "internal error"}:
                message = quote_end(detail.text or "")
            break
    return Case(file.removeprefix("tests/"), group, element.get("name", ""), status, message)


def _grade_cases(
    options: DeterministicTests, result: ProcessResult, cases: tuple[Case, ...], progress: _Progress
) -> RawGrade:
    if not cases and progress.collected == 0:
        raise MeasurementError(f"{options.label}: no test was found in {', '.join(options.tests)}")
    collected = max(len(cases), progress.collected or 0)
    counted = [case for case in cases if case.status is not CaseStatus.SKIPPED or case.label not in progress.marked]
    if cases and not counted:
        raise MeasurementError(f"{options.label}: marks skip every test on this machine")
    planned = collected - (len(cases) - len(counted))
    passed = [case for case in counted if case.status is CaseStatus.PASSED]
    problems: list[Raw] = []
    for case in counted:
        if case.status is not CaseStatus.PASSED:
            skipped = case.status is CaseStatus.SKIPPED
            reason = "was skipped, and a skipped test does not pass: " if skipped else ""
            problems.append(Quote(raw(f"{case.label}: {reason}", case.message)))
    missing = (name for name in options.required if not any(case.is_called(name) for case in passed))
    problems += [f"the required test {name} did not pass" for name in missing]
    if not problems:
        finished, end = min(len(cases), progress.finished), ""
        if finished == 0 or finished < collected:
            end = f"the run ended after {finished} of {collected} tests: the code under test stopped it"
        elif result.exit_code != 0:
            end = f"pytest ended with exit code {result.exit_code} although no test failed"
        problems = [raw(f"{end}: ", quote_end(result.stdout + result.stderr))] if end else []
    if len(problems) > MOST_CHECKS:
        problems = [*problems[:MOST_CHECKS], f"{len(problems) - MOST_CHECKS} more tests failed"]
    checks = [RawCheck(passed=False, message=problem) for problem in problems]
    checks = checks or [RawCheck(passed=True, message=f"{len(passed)} of {planned} tests passed")]
    return checks_grade(options, checks, score=min(len(passed), progress.finished) / planned if planned else 0.0)
