"""Static analysis of the agent's work."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.temporary import new_folder
from passgate.tasks.graders.checks import graded, settle
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.python_tools import PYTHON_TOOLS, PythonTool
from passgate.tasks.graders.shell import NOT_EXECUTABLE, NOT_FOUND, run_shell
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.graders.workspace import UnusableFileError, regular_file, resolve
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import StaticAnalysis
from passgate.tasks.model.sandbox import ProcessResult

_SOURCES: Final = (".py", ".pyi", ".ipynb")


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
