"""Test files put beside the agent's work after it has finished, then run."""

import asyncio
import secrets
import shlex
import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.temporary import new_folder
from passgate.tasks.graders.checks import graded
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.pytest_run import (
    INTERNAL_ERROR,
    Case,
    CaseStatus,
    PytestFolder,
    PytestProgress,
    environment,
    prepare,
    read_report,
    require_working_pytest,
    run_pytest,
)
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.graders.workspace import UnusableFileError, run_shell
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import DeterministicTests
from passgate.tasks.model.sandbox import ProcessResult, Sandbox

MOST_CHECKS: Final = 20


async def grade_tests(options: DeterministicTests, evidence: Evidence) -> Grade:
    """Run hidden tests against the workspace. All must pass; a skipped test has not passed.

    The score is the share of passed tests. A crash or a time-out of the tests is a fail: the code under test
    caused it. Raises `MeasurementError` when the tests are not there, hold no test, or cannot be run here.
    """
    async with _fresh_folder(evidence.sandbox) as place:
        folder = await asyncio.to_thread(prepare, place, evidence.sandbox.workspace)
        await asyncio.to_thread(_copy_tests, options, evidence.suites_folder, folder.tests)
        if options.command is not None:
            return await _grade_command(options, options.command, evidence.sandbox, folder.tests)
        return await _grade_pytest(options, evidence.sandbox, folder)


def _fresh_folder(sandbox: Sandbox) -> AbstractAsyncContextManager[Path]:
    # The name cannot be guessed: no process that the agent left behind waits there for the tests.
    return new_folder(sandbox.scratch, f"{secrets.token_hex(16)}-")


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


async def _grade_command(options: DeterministicTests, command: str, sandbox: Sandbox, tests: Path) -> Grade:
    command = command.replace("{tests}", shlex.quote(str(tests)))
    result = await run_shell(sandbox, command, seconds=options.timeout_seconds, environment=environment(tests))
    if result.timed_out:
        return graded(options, [_timed_out(options)])
    said = "" if result.exit_code == 0 else f": {ending(result.stdout + result.stderr)}"
    message = f"the tests ended with exit code {result.exit_code}{said}"
    return graded(options, [Check(passed=result.exit_code == 0, message=message)])


async def _grade_pytest(options: DeterministicTests, sandbox: Sandbox, folder: PytestFolder) -> Grade:
    result = await run_pytest(sandbox, folder, options.timeout_seconds)
    if result.timed_out:
        return graded(options, [_timed_out(options)])
    try:
        cases = await asyncio.to_thread(read_report, folder.root, folder.report)
    except UnusableFileError as error:
        await _probe(sandbox)
        return graded(options, [_crashed(result, str(error))])
    if result.exit_code == INTERNAL_ERROR and _is_pytests_fault(result, cases, sandbox.workspace):
        raise MeasurementError(f"pytest failed to run: {ending(result.stdout)}")
    return _grade_cases(options, result, cases, folder.progress())


async def _probe(sandbox: Sandbox) -> None:
    async with _fresh_folder(sandbox) as place:
        folder = await asyncio.to_thread(prepare, place, sandbox.workspace)
        await require_working_pytest(sandbox, folder)


def _is_pytests_fault(result: ProcessResult, cases: tuple[Case, ...], workspace: Path) -> bool:
    # pytest also calls it an internal error when a module ends the process as it is imported.
    return str(workspace) not in result.stdout and any(case.label == "pytest::internal" for case in cases)


def _grade_cases(
    options: DeterministicTests, result: ProcessResult, cases: tuple[Case, ...], progress: PytestProgress
) -> Grade:
    if not cases and progress.collected == 0:
        raise MeasurementError(f"{options.label}: no test was found in {', '.join(options.tests)}")
    planned = max(len(cases), progress.collected or 0)
    passed = sum(case.status is CaseStatus.PASSED for case in cases)
    problems = [
        *(_failed(case) for case in cases if case.status is not CaseStatus.PASSED),
        *_missing(options.required, cases),
    ]
    if not problems:
        problems = _unfinished(result, min(len(cases), progress.finished), planned)
    checks = _bounded(problems) or [Check(passed=True, message=f"{passed} of {planned} tests passed")]
    return graded(options, checks, score=min(passed, progress.finished) / planned if planned else 0.0)


def _failed(case: Case) -> Check:
    skipped = "was skipped, and a skipped test does not pass: "
    reason = skipped if case.status is CaseStatus.SKIPPED else ""
    return Check(passed=False, message=shorten(f"{case.label}: {reason}{case.message}"))


def _missing(required: tuple[str, ...], cases: tuple[Case, ...]) -> list[Check]:
    passed = [case for case in cases if case.status is CaseStatus.PASSED]
    return [
        Check(passed=False, message=f"the required test {name} did not pass")
        for name in required
        if not any(case.is_called(name) for case in passed)
    ]


def _unfinished(result: ProcessResult, finished: int, planned: int) -> list[Check]:
    if finished == 0 or finished < planned:
        message = f"the run ended after {finished} of {planned} tests: the code under test stopped it"
    elif result.exit_code != 0:
        message = f"pytest ended with exit code {result.exit_code} although no test failed"
    else:
        return []
    return [Check(passed=False, message=f"{message}: {ending(result.stdout + result.stderr)}")]


def _bounded(problems: list[Check]) -> list[Check]:
    if len(problems) <= MOST_CHECKS:
        return problems
    more = Check(passed=False, message=f"{len(problems) - MOST_CHECKS} more tests failed")
    return [*problems[:MOST_CHECKS], more]


def _timed_out(options: DeterministicTests) -> Check:
    seconds = f"{options.timeout_seconds:g} seconds"
    return Check(passed=False, message=f"the tests did not end within {seconds}: the code under test hangs")


def _crashed(result: ProcessResult, problem: str) -> Check:
    end = f"pytest ended with exit code {result.exit_code} and no usable report"
    said = ending(result.stderr) or ending(result.stdout) or problem
    return Check(passed=False, message=f"{end}: the code under test ended the process: {said}")
