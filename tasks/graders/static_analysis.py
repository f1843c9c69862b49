"""Static analysis of the agent's work.

Python starts isolated (`-I`), so a `ruff.py` in the workspace is not taken for ruff, and every flag that keeps
a tool from reading the workspace's configuration files is given: the agent could edit them.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.temporary import new_folder
from passgate.tasks.graders.checks import graded, settle
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.graders.workspace import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    UnusableFileError,
    regular_file,
    resolve,
    run_shell,
)
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import StaticAnalysis
from passgate.tasks.model.sandbox import ProcessResult

REMEDY: Final = "pip install 'passgate[graders]'"
_FINDINGS: Final = 1
_BLOCKED: Final = 2
_WHAT_BLOCKS_MYPY: Final = (": error:", "There are no .py[i] files in", "is not a valid Python package name")
_SOURCES: Final = (".py", ".pyi", ".ipynb")


class PythonTool(NamedTuple):
    """One tool: the command for some paths, and whether a result means that it found nothing."""

    command: Callable[[Path | None, tuple[str, ...]], list[str]]
    """From a configuration file, if any, and the paths."""
    is_clean: Callable[[ProcessResult, Path | None], bool]
    """Raises `MeasurementError` when the result is neither findings nor none."""


def _ruff_command(configuration: Path | None, paths: tuple[str, ...]) -> list[str]:
    chosen = ["--isolated"] if configuration is None else ["--config", str(configuration)]
    # A .gitignore in the workspace could take files out of sight.
    options = ["--no-cache", "--no-respect-gitignore", "--output-format=concise"]
    return [sys.executable, "-I", "-m", "ruff", "check", *chosen, *options, "--", *paths]


def _ruff_is_clean(result: ProcessResult, _configuration: Path | None) -> bool:
    if result.exit_code == 0:
        return "No Python files found" not in result.stderr
    if result.exit_code == _FINDINGS and result.stdout.strip():
        return False
    raise _failure("ruff", result)


def _mypy_command(configuration: Path | None, paths: tuple[str, ...]) -> list[str]:
    # An empty name keeps mypy from looking for a file itself.
    chosen = f"--config-file={configuration or ''}"
    options = ["--no-incremental", "--cache-dir=/dev/null", "--no-color-output"]
    return [sys.executable, "-I", "-m", "mypy", chosen, *options, "--", *paths]


def _mypy_is_clean(result: ProcessResult, configuration: Path | None) -> bool:
    said = result.stdout + result.stderr
    if configuration is not None and str(configuration) in result.stderr:
        # mypy goes on without the settings that it does not understand.
        raise MeasurementError(f"mypy cannot read its configuration: {ending(result.stderr)}")
    if result.exit_code == 0:
        return True
    if "INTERNAL ERROR" in said or result.stderr.startswith("usage:"):
        raise _failure("mypy", result)
    if result.exit_code == _FINDINGS and result.stdout.strip():
        return False
    # Code that mypy cannot take in at all, such as a syntax error, has the exit code of wrong usage.
    if result.exit_code == _BLOCKED and any(text in said for text in _WHAT_BLOCKS_MYPY):
        return False
    raise _failure("mypy", result)


def _failure(tool: str, result: ProcessResult) -> MeasurementError:
    if f"No module named {tool}" in result.stderr:
        return MeasurementError(f"{tool} is not installed: {REMEDY}")
    said = ending(result.stderr) or ending(result.stdout)
    return MeasurementError(f"{tool} did not work (exit code {result.exit_code}): {said}")


PYTHON_TOOLS: Final = {
    "ruff": PythonTool(_ruff_command, _ruff_is_clean),
    "mypy": PythonTool(_mypy_command, _mypy_is_clean),
}


async def grade_static_analysis(options: StaticAnalysis, evidence: Evidence) -> Grade:
    """Run every tool over the workspace; none may find anything. The score is the share that found nothing.

    Code that a tool cannot parse is a finding. Raises `MeasurementError` when a tool is not installed, does
    not work or does not end in time.
    """
    return graded(options, await settle(_run_tool(tool, options, evidence) for tool in options.tools))


async def _run_tool(tool: str, options: StaticAnalysis, evidence: Evidence) -> Check:
    if tool not in PYTHON_TOOLS:
        return await _run_custom(tool, options, evidence)
    try:
        await asyncio.to_thread(_require_sources, evidence.sandbox.workspace, options.paths)
    except UnusableFileError as error:
        return Check(passed=False, message=f"{tool} cannot analyse the work: {error}")
    async with new_folder(evidence.sandbox.scratch) as folder:
        configuration = await asyncio.to_thread(_copy_configuration, tool, options, evidence, folder)
        return await _run_python_tool(tool, PYTHON_TOOLS[tool], configuration, options, evidence)


async def _run_custom(command: str, options: StaticAnalysis, evidence: Evidence) -> Check:
    result = await run_shell(evidence.sandbox, command, seconds=options.timeout_seconds)
    _require_end(command, result, options)
    if result.exit_code in {NOT_EXECUTABLE, NOT_FOUND}:
        raise MeasurementError(f"`{command}` cannot be run: {ending(result.stderr)}")
    return _check(command, result, clean=result.exit_code == 0)


async def _run_python_tool(
    name: str, tool: PythonTool, configuration: Path | None, options: StaticAnalysis, evidence: Evidence
) -> Check:
    command = tool.command(configuration, options.paths)
    result = await evidence.sandbox.run(command, seconds=options.timeout_seconds)
    _require_end(name, result, options)
    return _check(name, result, clean=tool.is_clean(result, configuration))


def _check(tool: str, result: ProcessResult, *, clean: bool) -> Check:
    if clean:
        return Check(passed=True, message=f"{tool} found no problems")
    findings = shorten((result.stdout + result.stderr).strip())
    return Check(passed=False, message=f"{tool} found: {findings}")


def _require_end(tool: str, result: ProcessResult, options: StaticAnalysis) -> None:
    if result.timed_out:
        seconds = f"{options.timeout_seconds:g} seconds"
        raise MeasurementError(f"{tool} did not end within {seconds}: increase `timeout_seconds` of {options.label}")


def _copy_configuration(tool: str, options: StaticAnalysis, evidence: Evidence, folder: Path) -> Path | None:
    # Copied, because a sandbox need not show the suites folder to what runs in it.
    relative = next((path for name, path in options.configuration.items() if name == tool), None)
    if relative is None:
        return None
    try:
        return Path(shutil.copy(evidence.suites_folder / relative, folder))
    except OSError as error:
        raise MeasurementError(f"the configuration of {tool} cannot be read: {error}") from error


def _require_sources(workspace: Path, paths: tuple[str, ...]) -> None:
    """Refuse paths that hold nothing to analyse, and anything named like source code that is not a file.

    Both tools find nothing where there is nothing, and wait for ever when they meet a FIFO.
    """
    for relative in paths:
        found = list(_sources(workspace, relative))
        if not found:
            raise UnusableFileError(f"there is no Python file in {relative}")
        for source in found:
            regular_file(workspace, source)


def _sources(workspace: Path, relative: str) -> Iterator[str]:
    path = resolve(workspace, relative)
    if not path.is_dir():
        yield relative
        return
    root = Path(os.path.realpath(workspace))
    for folder, _, names in os.walk(path):
        yield from (str((Path(folder) / name).relative_to(root)) for name in names if name.endswith(_SOURCES))
